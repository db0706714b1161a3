import { signal } from '@preact/signals';
import type { Break } from '../client/client.ts';

/** How often it was tried, and when it is tried again (epoch, milliseconds); nothing where no stream waits for it. */
export interface Down {
  readonly attempt?: number;
  readonly again?: number;
}

/** Whether the server can be reached: undefined while it can. */
export class Line {
  readonly down = signal<Down | undefined>(undefined);

  readonly broke = ({ attempt, delay }: Break): void => {
    this.down.value = { attempt, again: Date.now() + delay };
  };

  /** A request was not answered. */
  readonly lost = (): void => {
    this.down.value ??= {};
  };

  readonly answered = (): void => {
    this.down.value = undefined;
  };
}
