import { Observable, type Subscriber } from 'rxjs';
import type { Event } from '../schema/event.ts';

/** Opens a reader, for a loop or a subscription. When the signal fires, it ends or throws the signal's reason. */
export type OpenReader<T> = (signal: AbortSignal, isLoop: boolean) => AsyncGenerator<T, void, undefined>;

/**
 * The events of a run or of a feed, as a cold Observable and as an async iterable. Each subscription and each loop is a separate reader.
 * The Observable pushes events as they arrive. A loop reads the next event when it asks for it, so a slow loop costs no
 * memory.
 */
export class Events<T = Event> extends Observable<T> implements AsyncIterable<T> {
  readonly #open: OpenReader<T>;

  constructor(open: OpenReader<T>) {
    super((subscriber) => {
      const abort = new AbortController();
      void push(open(abort.signal, false), subscriber);
      return () => abort.abort();
    });
    this.#open = open;
  }

  /** Leaving the loop detaches, as unsubscribing does. */
  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    return this.#open(new AbortController().signal, true);
  }
}

async function push<T>(events: AsyncIterable<T>, subscriber: Subscriber<T>): Promise<void> {
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
