import { Observable, type Subscriber } from 'rxjs';
import type { Event } from '../schema/event.ts';

/** Opens a reader that ends, or throws the signal's reason, soon after the signal fires. */
export type Open = (signal: AbortSignal) => AsyncGenerator<Event, void, undefined>;

/**
 * A run's events, as a cold Observable and as an async iterable: each subscription and each loop is a reader of its own.
 * An Observable pushes as events come; a loop is given the next one when it asks, and reads nothing meanwhile,
 * so that a slow one costs no memory.
 */
export class Events extends Observable<Event> implements AsyncIterable<Event> {
  readonly #open: Open;

  constructor(open: Open) {
    super((subscriber) => {
      const left = new AbortController();
      void push(open(left.signal), subscriber);
      return () => left.abort();
    });
    this.#open = open;
  }

  /** Leaving the loop detaches, as unsubscribing does. */
  [Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    return this.#open(new AbortController().signal);
  }
}

async function push(events: AsyncIterable<Event>, subscriber: Subscriber<Event>): Promise<void> {
  try {
    for await (const event of events) {
      subscriber.next(event);
      if (subscriber.closed) return;
    }
    subscriber.complete();
  } catch (error) {
    // Nobody hears it who has unsubscribed; that is what the abort was for.
    subscriber.error(error);
  }
}
