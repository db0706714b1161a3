import { Socket } from 'node:net';
import { type Client, type ClientConfig, escapeIdentifier } from 'pg';
import { Delay, retry, within } from '../../core/timing.ts';
import { PostgresClient } from '../../postgres/connections.ts';
import type { Channels } from '../remote/channels.ts';
import type { Subscription } from '../remote/shared-subscription.ts';
import { isPostgresUnavailable } from './errors.ts';

/** Milliseconds between checks of the connection, and until an answer to a check counts as lost. */
const checkInterval = 10_000;
const checkTimeout = 5_000;

/** Milliseconds for a clean close of the connection. */
const closeTimeout = 500;

/** Listens to channels on a connection of its own, and reconnects until it is closed. */
export class Listener implements Subscription {
  readonly active: Promise<void>;
  readonly #config: ClientConfig;
  readonly #channels: Channels;
  readonly #onText: (text: string | undefined) => void;
  readonly #delay = new Delay();
  readonly #done: Promise<unknown>;
  #resolveActive = (): void => {};
  #rejectActive = (_error: unknown): void => {};
  #socket: Socket | undefined;
  #client: Client | undefined;
  #hasListened = false;

  constructor(config: ClientConfig, channels: Channels, onText: (text: string | undefined) => void) {
    this.#config = {
      ...config,
      connectionTimeoutMillis: 3_000,
      query_timeout: checkTimeout,
      keepAliveInitialDelayMillis: checkInterval,
    };
    this.#channels = channels;
    this.#onText = onText;
    this.active = new Promise((resolve, reject) => {
      this.#resolveActive = resolve;
      this.#rejectActive = reject;
    });
    // After a first success, a refusal may be a passing state of the server.
    const again = (error: unknown): boolean => this.#hasListened || isPostgresUnavailable(error);
    this.#done = retry((progress) => this.#listen(progress), { again, delay: this.#delay }).catch(this.#rejectActive);
  }

  async close(): Promise<void> {
    this.#rejectActive(new Error('the store is closed'));
    this.#delay.close();
    if (this.#client !== undefined) await within(closeTimeout, this.#client.end()).catch(() => {});
    this.#socket?.destroy();
    await this.#done;
  }

  /** Rejects when the connection ends, or does not answer a check. */
  async #listen(progress: () => void): Promise<never> {
    const socket = new Socket();
    const client = new PostgresClient({ ...this.#config, stream: () => socket });
    const lost = new Delay();
    client.on('notification', ({ payload = '' }) => this.#onText(payload));
    client.once('end', () => lost.end());
    this.#socket = socket;
    try {
      await client.connect();
      await this.#channels.connect((join, leave) =>
        client.query(
          [
            ...join.map((name) => `LISTEN ${escapeIdentifier(name)}`),
            ...leave.map((name) => `UNLISTEN ${escapeIdentifier(name)}`),
          ].join('; '),
        ),
      );
      // `end()` works from now on only: that of a client that is still connecting never resolves.
      this.#client = client;
      progress();
      this.#resolveActive();
      if (this.#hasListened) this.#onText(undefined);
      this.#hasListened = true;
      for (;;) {
        await lost.wait(checkInterval);
        await client.query('SELECT 1');
      }
    } finally {
      this.#client = undefined;
      socket.destroy();
    }
  }
}
