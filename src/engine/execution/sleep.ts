import { Observable } from 'rxjs';

/** Milliseconds between two looks at the clock, which may be set, or stand still while the machine sleeps. */
const longestWait = 60_000;

/** Completes at a time: milliseconds since 1970, as `now` has them. */
export const sleepUntil = (until: number, now: () => number): Observable<never> =>
  new Observable((subscriber) => {
    let timer: NodeJS.Timeout | undefined;
    const wait = (): void => {
      const left = until - now();
      if (left <= 0) subscriber.complete();
      else timer = setTimeout(wait, Math.min(left, longestWait));
    };
    wait();
    return () => clearTimeout(timer);
  });
