import { signal } from '@preact/signals';
import type { Break } from '../client/client.ts';

/** Why nothing comes, and when it is tried again (epoch, milliseconds). */
export interface Down {
  readonly why: string;
  readonly attempt: number;
  readonly again: number;
}

/** Whether the server can be reached: undefined while it can. */
export class Line {
  readonly down = signal<Down | undefined>(undefined);

  readonly broke = ({ error, attempt, delay }: Break): void => {
    this.down.value = { why: error.message, attempt, again: Date.now() + delay };
  };

  readonly answered = (): void => {
    this.down.value = undefined;
  };
}
