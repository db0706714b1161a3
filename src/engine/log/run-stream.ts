import { Observable } from 'rxjs';
import type { Batch } from '../../core/ports/run-store.ts';
import type { Cursor } from './cursor.ts';

/**
 * The run stream: the Observable of a run's numbered events, history first, then live. It is cold: each subscription
 * has a cursor of its own, and unsubscribing closes that cursor. It is also an async iterable, which reads the next batch on
 * demand. It emits batches, because events that were committed together are sent together.
 */
export class RunStream extends Observable<Batch> implements AsyncIterable<Batch> {
  readonly #open: () => Cursor;

  /** `open` makes a cursor at the stream's beginning. */
  constructor(open: () => Cursor) {
    super((subscriber) => {
      const cursor = open();
      subscriber.add(() => cursor.close());
      cursor.follow(
        (batch) => subscriber.next(batch),
        (error) => (error === undefined ? subscriber.complete() : subscriber.error(error)),
      );
    });
    this.#open = open;
  }

  /** A pull cursor; the caller closes it. */
  cursor(): Cursor {
    return this.#open();
  }

  [Symbol.asyncIterator](): AsyncIterator<Batch, void, undefined> {
    return this.#open()[Symbol.asyncIterator]();
  }
}
