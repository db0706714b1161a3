import { Observable, type Subscriber } from 'rxjs';
import type { Event } from '../schema/event.ts';

/** Opens a reader. When the signal fires, it ends or throws the signal's reason. */
export type OpenReader = (signal: AbortSignal) => AsyncGenerator<Event, void, undefined>;

/**
 * The events of a run, as a cold Observable and as an async iterable. Each subscription and each loop is a separate reader.
 * The Observable pushes events as they arrive. A loop reads the next event when it asks for it, so a slow loop costs no
 * memory.
 */
export class Events extends Observable<Event> implements AsyncIterable<Event> {
  readonly #open: OpenReader;

  constructor(open: OpenReader) {
    super((subscriber) => {
      const abort = new AbortController();
      void push(open(abort.signal), subscriber);
      return () => abort.abort();
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
    // RxJS ignores it after unsubscription, which is what caused the abort.
    subscriber.error(error);
  }
}
