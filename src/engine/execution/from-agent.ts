import { setImmediate as nextTurn } from 'node:timers/promises';
import { Observable, type ObservableInput, of, type Subscribable, type Subscriber } from 'rxjs';
import type { AgentOutput, AgentResult, Callbag } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';

export interface SourceHooks {
  /** Asked after each value of an iterable; a promise holds the agent back until it resolves. */
  readonly ready?: () => Promise<void> | undefined;
  /** Gets work that unsubscribing cannot stop at once, so that a cancel can wait for it. */
  readonly pending?: (work: Promise<unknown>) => void;
}

/**
 * Makes an Observable of what an agent's code returns: an Observable of any library, a callbag, a promise, an iterable,
 * an async generator or a stream. A string is one value, not its letters.
 * `then` is called once for each subscription: a query builder runs its query whenever its `then` is called.
 */
export function fromAgent<T>(input: ObservableInput<T> | Callbag, source: SourceHooks = {}): Observable<T> {
  // The type takes a string as an iterable of letters.
  if (typeof input === 'string') return of<T>(input);
  if (input instanceof Observable) return input;
  if (isObservable(input)) return fromSubscribable<T>(input);
  if (isAsyncIterable<T>(input)) return fromAsyncIterable(input, source);
  if (isPromise<T>(input)) return fromPromise(input, source, giveOne);
  if (isIterable<T>(input)) return fromIterable(input, source);
  if (isCallbag(input)) return fromCallbag(input, source);
  throw new TypeError(
    `expected an Observable, a promise or an iterable; got ${input === null ? 'null' : typeof input}`,
  );
}

/**
 * The output of an agent's function, from what it returned. What a promise resolves to may be one output, or an array,
 * an iterable or an Observable of output: an `async` function returns a promise of all of these.
 * @throws RivuletError `output_invalid` that names the agent and says what came
 */
export function outputOf(agent: string, returned: AgentResult, source: SourceHooks): Observable<AgentOutput> {
  if (typeof returned === 'string' || isStream(returned)) return fromAgent<AgentOutput>(returned, source);
  if (!isPromise<AgentOutput | ObservableInput<AgentOutput>>(returned)) {
    const got = `it returned ${nameOf(returned)}`;
    throw fail('output_invalid', agent, `${got}, expected a text, a promise, an iterable or an Observable of output`);
  }
  return fromPromise(returned, source, (value, subscriber) => {
    if (isStream<AgentOutput>(value)) fromAgent<AgentOutput>(value, source).subscribe(subscriber);
    else giveOne(value, subscriber);
  });
}

const nameOf = (value: unknown): string =>
  typeof value === 'object' && value !== null
    ? `one object (${Object.keys(value).slice(0, 5).join(', ')}), which belongs into an array or of(…)`
    : String(value === null ? value : typeof value);

const ignore = (): void => {};

const has = (value: unknown, key: PropertyKey): boolean =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
  typeof Reflect.get(value, key) === 'function';

/** Where libraries have the method that returns an Observable. A library may define the symbol when it is loaded. */
const observableKeys = (): PropertyKey[] => [Symbol.observable ?? '@@observable', '@@observable'];
const isObservable = (value: unknown): value is object =>
  has(value, 'subscribe') || observableKeys().some((key) => has(value, key));
const isAsyncIterable = <T>(value: unknown): value is AsyncIterable<T> => has(value, Symbol.asyncIterator);
const isPromise = <T>(value: unknown): value is PromiseLike<T> => has(value, 'then');
/** The functions of https://github.com/callbag/callbag have two parameters. */
const isCallbag = (value: unknown): value is Callbag => typeof value === 'function' && value.length === 2;
const isIterable = <T>(value: unknown): value is Iterable<T> => has(value, Symbol.iterator);
/** Whether the value emits any number of values. A promise has one. */
const isStream = <T>(value: unknown): value is Subscribable<T> & ObservableInput<T> =>
  isObservable(value) || isAsyncIterable(value) || (isPromise(value) ? false : isIterable(value) || isCallbag(value));

/**
 * The Observable of the web platform calls the methods of its observer without `this`, returns nothing from `subscribe`, and
 * is cancelled by a signal. Other Observables ignore the signal and return a subscription. An object with a symbol
 * for its Observable may have a `subscribe` of its own with other arguments, so the symbol comes first.
 */
function fromSubscribable<T>(input: object): Observable<T> {
  return new Observable<T>((subscriber) => {
    const left = new AbortController();
    subscriber.add(() => left.abort());
    const observer = {
      next: (value: T) => subscriber.next(value),
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    };
    const key = observableKeys().find((one) => has(input, one));
    const source: object = key === undefined ? input : Reflect.apply(Reflect.get(input, key), input, []);
    return Reflect.apply(Reflect.get(source, 'subscribe'), source, [observer, { signal: left.signal }]);
  });
}

/** The kinds of calls between a source of the callbag specification and its sink. */
const callbag = { start: 0, data: 1, end: 2 } as const;

/** Goes on in a new slice after a wait. */
function goOnAfter(wait: Promise<void>, slices: Slices, subscriber: Subscriber<unknown>, goOn: () => void): void {
  wait.then(
    () => {
      slices.renew();
      goOn();
    },
    (error: unknown) => subscriber.error(error),
  );
}

/** Asks for one value at a time, which a source that pushes ignores. */
function fromCallbag<T>(source: Callbag, { ready }: SourceHooks): Observable<T> {
  return new Observable<T>((subscriber) => {
    const slices = new Slices();
    let talkback: ((kind: 1 | 2) => void) | undefined;
    let asked = 0;
    let asking = false;
    let ended = false;
    // In a loop: a source that answers at once would nest a call for each value.
    const ask = (): void => {
      asked += 1;
      if (asking) return;
      asking = true;
      for (; asked > 0 && !subscriber.closed && !ended; asked -= 1) talkback?.(callbag.data);
      asking = false;
    };
    const sink = (kind: 0 | 1 | 2, value: unknown): void => {
      if (kind === callbag.start) {
        talkback = value as typeof talkback;
        subscriber.add(() => ended || talkback?.(callbag.end));
        ask();
      } else if (kind === callbag.data) {
        subscriber.next(value as T);
        const wait = ready?.() ?? (slices.over ? nextTurn() : undefined);
        if (wait === undefined) ask();
        else goOnAfter(wait, slices, subscriber, ask);
      } else {
        ended = true;
        if (value === undefined) subscriber.complete();
        else subscriber.error(value);
      }
    };
    const returned: unknown = Reflect.apply(source, undefined, [callbag.start, sink]);
    if (returned === undefined || talkback !== undefined || ended) return;
    // Another function of two parameters, such as one that the agent was to call.
    Promise.resolve(returned).catch(ignore);
    subscriber.error(new TypeError('expected a callbag; got a function that returns a value and calls no sink'));
  });
}

/** `give` passes the promise's value to the subscriber. */
function fromPromise<V, T>(
  input: PromiseLike<V>,
  { pending }: SourceHooks,
  give: (value: V, subscriber: Subscriber<T>) => void,
): Observable<T> {
  return new Observable<T>((subscriber) => {
    // One promise for the subscriber and for a cancel that waits: `then` of the input may be called only once.
    const settled = new Promise<V>((resolve) => resolve(input))
      .then((value) => give(value, subscriber))
      .catch((error: unknown) => subscriber.error(error));
    pending?.(settled);
  });
}

function giveOne<T>(value: T, subscriber: Subscriber<T>): void {
  subscriber.next(value);
  subscriber.complete();
}

/** Milliseconds that an iterable may emit for before other work of the process gets its turn. */
const slice = 12;

/** Tells when an iterable has to pause until the event loop has turned. */
class Slices {
  #until = performance.now() + slice;

  get over(): boolean {
    return performance.now() > this.#until;
  }

  renew(): void {
    this.#until = performance.now() + slice;
  }
}

// The conversion of rxjs pulls as fast as it can. This one waits while the log is behind: an endless generator would fill
// the memory. It also lets the event loop turn: a generator that never waits would block the process.
function fromAsyncIterable<T>(iterable: AsyncIterable<T>, { ready, pending }: SourceHooks): Observable<T> {
  return new Observable<T>((subscriber) => {
    const iterator = iteratorOf(iterable);
    const slices = new Slices();
    const pull = async (): Promise<void> => {
      try {
        for (let next = await iterator.next(); !subscriber.closed; next = await iterator.next()) {
          if (next.done === true) return subscriber.complete();
          subscriber.next(next.value);
          const wait = ready?.();
          if (wait !== undefined) await wait;
          if (slices.over) {
            await nextTurn();
            slices.renew();
          }
        }
      } catch (error) {
        subscriber.error(error);
      }
    };
    const pulling = pull();
    pending?.(pulling);
    return () => {
      // `return` takes effect after the generator's pending await. The run's signal ends that await.
      const closing = (async () => iterator.return?.())().then(ignore, ignore);
      pending?.(closing);
    };
  });
}

/** The iterator of a stream closes the stream after a pending read only; this one does so at once, which ends the read. */
function iteratorOf<T>(source: AsyncIterable<T>): AsyncIterator<T> {
  if (source instanceof ReadableStream) {
    const reader: ReadableStreamDefaultReader<T> = source.getReader();
    const next = async (): Promise<IteratorResult<T, undefined>> => {
      const { done, value } = await reader.read();
      return done ? { done, value: undefined } : { done, value };
    };
    return { next, return: () => reader.cancel().then(() => ({ done: true, value: undefined })) };
  }
  const iterator = source[Symbol.asyncIterator]();
  if (!has(source, 'destroy') || !has(source, 'read')) return iterator;
  const destroy = async (): Promise<IteratorResult<T, undefined>> => {
    Reflect.apply(Reflect.get(source, 'destroy'), source, []);
    return { done: true, value: undefined };
  };
  return { next: () => iterator.next(), return: destroy };
}

// The first values are emitted at once, as by rxjs. After one time slice the rest follows in a later turn.
function fromIterable<T>(iterable: Iterable<T>, { ready }: SourceHooks): Observable<T> {
  return new Observable<T>((subscriber) => {
    const iterator = iterable[Symbol.iterator]();
    const slices = new Slices();
    let ended = false;
    const pull = (): void => {
      try {
        while (!subscriber.closed) {
          const next = iterator.next();
          if (next.done === true) {
            ended = true;
            subscriber.complete();
            return;
          }
          subscriber.next(next.value);
          const wait = ready?.();
          if (wait !== undefined || slices.over) {
            goOnAfter(wait ?? nextTurn(), slices, subscriber, pull);
            return;
          }
        }
      } catch (error) {
        ended = true;
        subscriber.error(error);
      }
    };
    pull();
    return () => {
      if (ended) return;
      try {
        iterator.return?.();
      } catch {
        // The subscriber has left: no code waits for this error.
      }
    };
  });
}
