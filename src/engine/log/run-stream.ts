import { Observable } from 'rxjs';
import type { Batch } from '../../core/store.ts';
import type { Cursor } from './cursor.ts';

/**
 * The run stream: the Observable of a run's numbered events, history first, then live, by one code path. Cold: each
 * subscription reads on its own, from its own position, and unsubscribing closes it. The same stream is an async
 * iterable, which holds back (the next batch is read when it is asked for), and gives out the cursor itself to
 * writers that count each promise. Emits batches, because what was committed together is sent together.
 */
export class RunStream extends Observable<Batch> implements AsyncIterable<Batch> {
  readonly #open: () => Cursor;

  /** `open` makes a cursor at the stream's beginning. */
  constructor(open: () => Cursor) {
    super((subscriber) => {
      const cursor = open();
      subscriber.add(() => cursor.close());
      const read = (): void => {
        try {
          for (let batch = cursor.read(); batch !== 'later'; batch = cursor.read()) {
            if (batch === 'end') {
              subscriber.complete();
              return;
            }
            subscriber.next(batch);
          }
        } catch (error) {
          subscriber.error(error);
        }
      };
      cursor.onReady(read);
      read();
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
