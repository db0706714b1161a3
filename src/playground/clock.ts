import { signal } from '@preact/signals';
import { filter, interval, type Subscription } from 'rxjs';

const tick = 1_000; // milliseconds

/** The time for ages and running durations. */
export class Clock {
  /** Milliseconds since 1970, renewed each second while the tab is visible. */
  readonly now = signal(Date.now());

  start(): Subscription {
    return interval(tick)
      .pipe(filter(() => document.visibilityState === 'visible'))
      .subscribe(() => {
        this.now.value = Date.now();
      });
  }
}
