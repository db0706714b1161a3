import { from, Observable, type ObservableInput, of, type Subscribable } from 'rxjs';

export interface Source {
  /** Asked after each value of an async iterable; a promise holds the agent back until it resolves. */
  readonly ready?: () => Promise<void> | undefined;
  /** Told of work that unsubscribing cannot stop at once, so that a cancel can wait for it. */
  readonly pending?: (work: Promise<unknown>) => void;
}

/**
 * The one door for whatever a function of an agent returns: an Observable of any copy of rxjs,
 * a promise, an iterable, an async generator, a stream; a bare string is one value, never its letters.
 */
export function fromAgent<T>(input: ObservableInput<T>, source: Source = {}): Observable<T> {
  // A string is iterable, so the type lets it in as its letters; here it is one value.
  if (typeof input === 'string') return of<T>(input);
  if (input instanceof Observable) return input;
  if (isSubscribable<T>(input)) return new Observable((subscriber) => input.subscribe(subscriber));
  if (isAsyncIterable<T>(input)) return fromAsyncIterable(input, source);
  if (isPromise<T>(input)) source.pending?.(Promise.resolve(input).then(ignore, ignore));
  return from(input);
}

const ignore = (): void => {};

const has = (value: unknown, key: PropertyKey): boolean =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, key) === 'function';

const isSubscribable = <T>(value: unknown): value is Subscribable<T> => has(value, 'subscribe');
const isAsyncIterable = <T>(value: unknown): value is AsyncIterable<T> => has(value, Symbol.asyncIterator);
const isPromise = <T>(value: unknown): value is PromiseLike<T> => has(value, 'then');

// rxjs' own conversion pulls as fast as it can; this one waits while the log is behind, so that
// a generator without an end cannot fill the memory or starve the event loop.
function fromAsyncIterable<T>(iterable: AsyncIterable<T>, { ready, pending }: Source): Observable<T> {
  return new Observable<T>((subscriber) => {
    const iterator = iterable[Symbol.asyncIterator]();
    const pull = async (): Promise<void> => {
      try {
        for (let next = await iterator.next(); !subscriber.closed; next = await iterator.next()) {
          if (next.done === true) return subscriber.complete();
          subscriber.next(next.value);
          const wait = ready?.();
          if (wait !== undefined) await wait;
        }
      } catch (error) {
        subscriber.error(error);
      }
    };
    const pulling = pull();
    pending?.(pulling);
    return () => {
      // Takes effect after the generator's pending await; the run's signal is what ends that one.
      const closing = (async () => iterator.return?.())().then(ignore, ignore);
      pending?.(closing);
    };
  });
}
