import { backoff, Pause } from './outage.ts';
import type { Parcel } from './parcels.ts';

/** Sends a parcel, which has that number, to the server. Answers for each write whether it was taken. */
type Send = (parcel: Parcel, number: number) => Promise<boolean[]>;

/**
 * The parcels of one writer, one after the other, each sent until it is answered: a server that is away for a while
 * delays commits, and loses none. To send one again is harmless, because the server knows the number of the last one
 * that it has taken. So there is never more than one under way; whoever commits meanwhile waits for its turn.
 */
export class Deliveries {
  readonly #send: Send;
  readonly #away: (error: unknown) => boolean;
  readonly #pause = new Pause();
  #number = 0;
  #last: Promise<unknown> = Promise.resolve();
  #closing = false;

  /** `away` tells an error that says nothing about the parcel: it did not arrive, or its answer got lost. */
  constructor(send: Send, away: (error: unknown) => boolean) {
    this.#send = send;
    this.#away = away;
  }

  /** Answers for the writes of all parcels of a commit. @throws what the server says against one of them */
  commit(parcels: Iterable<Parcel>): Promise<boolean[]> {
    if (this.#closing) return Promise.reject(new Error('the store is closed'));
    const commit = this.#last.then(() => this.#all(parcels));
    this.#last = commit.catch(() => {});
    return commit;
  }

  /** The server may be back: what waits for it is sent at once. */
  wake(): void {
    this.#pause.end();
  }

  /** Nothing is tried again from now on. Resolves when everything is answered or has failed. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#pause.end();
    await this.#last;
  }

  async #all(parcels: Iterable<Parcel>): Promise<boolean[]> {
    const taken: boolean[] = [];
    for (const parcel of parcels) taken.push(...(await this.#deliver(parcel)));
    return taken;
  }

  async #deliver(parcel: Parcel): Promise<boolean[]> {
    this.#number += 1;
    for (let tries = 0; ; tries += 1) {
      try {
        return await this.#send(parcel, this.#number);
      } catch (error) {
        if (!this.#away(error)) throw error;
        if (!this.#closing) await this.#pause.of(backoff(tries));
        if (this.#closing) throw error;
      }
    }
  }
}
