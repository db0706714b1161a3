import { Socket } from 'node:net';
import { Client, type ClientConfig, escapeIdentifier } from 'pg';
import { backoff, Pause, within } from '../remote/outage.ts';
import type { Subscription } from '../remote/watchers.ts';
import { postgresAway } from './unavailable.ts';

/** How often it is made sure that the connection lives, and how soon the answer has to be there: in milliseconds. */
const checkEvery = 10_000;
const checkTimeout = 5_000;

/** How long the connection may take to end in good order, in milliseconds. */
const goodbye = 500;

/** Listens to a channel with a connection of its own. */
export class Listener implements Subscription {
  readonly active: Promise<void>;
  readonly #config: ClientConfig;
  readonly #channel: string;
  readonly #hear: (text: string | undefined) => void;
  readonly #pause = new Pause();
  readonly #done: Promise<void>;
  #activate = (): void => {};
  #giveUp = (_error: unknown): void => {};
  #socket: Socket | undefined;
  #client: Client | undefined;
  #tries = 0;
  #heard = false;
  #closed = false;

  constructor(config: ClientConfig, channel: string, hear: (text: string | undefined) => void) {
    this.#config = {
      ...config,
      connectionTimeoutMillis: 3_000,
      query_timeout: checkTimeout,
      keepAliveInitialDelayMillis: checkEvery,
    };
    this.#channel = escapeIdentifier(channel);
    this.#hear = hear;
    this.active = new Promise((resolve, reject) => {
      this.#activate = resolve;
      this.#giveUp = reject;
    });
    this.#done = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#giveUp(new Error('the store is closed'));
    this.#pause.end();
    if (this.#client !== undefined) await within(goodbye, this.#client.end());
    this.#socket?.destroy();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      // It rejects in the end, however well it went.
      const error = await this.#listen().catch((reason: unknown) => reason);
      // Later, the same may be a state of the server that passes.
      if (!this.#heard && !postgresAway(error)) return this.#giveUp(error);
      if (!this.#closed) await this.#pause.of(backoff(this.#tries));
      this.#tries += 1;
    }
  }

  /** Rejects when the connection ends, or does not answer any more. */
  async #listen(): Promise<never> {
    const socket = new Socket();
    const client = new Client({ ...this.#config, stream: () => socket });
    const lost = new Pause();
    client.on('error', () => {}).on('notification', ({ payload = '' }) => this.#hear(payload));
    client.once('end', () => lost.end());
    this.#socket = socket;
    try {
      await client.connect();
      await client.query(`LISTEN ${this.#channel}`);
      // Only from now on can it end in good order: one that ends while it connects never says so.
      this.#client = client;
      this.#tries = 0;
      this.#activate();
      if (this.#heard) this.#hear(undefined);
      this.#heard = true;
      for (;;) {
        await lost.of(checkEvery);
        await client.query('SELECT 1');
      }
    } finally {
      this.#client = undefined;
      socket.destroy();
    }
  }
}
