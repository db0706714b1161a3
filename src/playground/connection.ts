import { signal } from '@preact/signals';
import type { Break } from '../client/client.ts';

/** The failed attempts, and the time of the next one (epoch, milliseconds); both absent if no stream reconnects. */
export interface Disconnection {
  readonly attempt?: number;
  readonly retryAt?: number;
}

/** Whether the server can be reached. */
export class ConnectionState {
  /** Undefined while the server can be reached. */
  readonly disconnection = signal<Disconnection | undefined>(undefined);

  readonly onBreak = ({ attempt, delay }: Break): void => {
    this.disconnection.value = { attempt, retryAt: Date.now() + delay };
  };

  readonly onFailure = (): void => {
    this.disconnection.value ??= {};
  };

  readonly onResponse = (): void => {
    this.disconnection.value = undefined;
  };
}
