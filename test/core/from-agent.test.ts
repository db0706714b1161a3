import { Readable } from 'node:stream';
import fromIter from 'callbag-from-iter';
import { firstValueFrom, NEVER, of, toArray } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import ZenObservable from 'zen-observable';
import type { Callbag } from '../../src/core/agent.ts';
import { fromAgent } from '../../src/engine/execution/from-agent.ts';
import { deferred } from '../support/deferred.ts';
import { turn } from '../support/turn.ts';

const all = <T>(input: Parameters<typeof fromAgent<T>>[0]): Promise<T[]> =>
  firstValueFrom(fromAgent(input).pipe(toArray()));

describe('the conversion of an agent’s return value', () => {
  it('takes a bare string as one value', async () => {
    expect(await all('hey')).toEqual(['hey']);
  });

  it('takes Observables, promises, iterables, generators and streams', async () => {
    expect(await all(of(1, 2))).toEqual([1, 2]);
    expect(await all(Promise.resolve('hey'))).toEqual(['hey']);
    expect(await all(['a', 'b'])).toEqual(['a', 'b']);
    expect(
      await all(
        (function* () {
          yield 1;
          yield 2;
        })(),
      ),
    ).toEqual([1, 2]);
    expect(
      await all(
        (async function* () {
          yield 1;
          yield 2;
        })(),
      ),
    ).toEqual([1, 2]);
    expect(
      await all(new Blob(['xyz']).stream().pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>),
    ).toEqual(['xyz']);
  });

  it('takes an Observable of the web platform, and cancels it with its signal', () => {
    const seen: unknown[] = [];
    let emit: (value: number) => void = () => {};
    const web = {
      subscribe({ next }: { next(value: number): void }, { signal }: { signal: AbortSignal }) {
        emit = (value) => next.call(undefined, value);
        signal.addEventListener('abort', () => seen.push('cancelled'));
      },
    };
    const subscription = fromAgent(web as never).subscribe((value) => seen.push(value));
    emit(1);
    subscription.unsubscribe();
    expect(seen).toEqual([1, 'cancelled']);
  });

  it('takes an Observable of another copy of rxjs', async () => {
    const foreign = {
      subscribe: (observer: { next(value: number): void; complete(): void }) => {
        observer.next(1);
        observer.complete();
        return { unsubscribe: () => {} };
      },
    };
    expect(await firstValueFrom(fromAgent(foreign as never).pipe(toArray()))).toEqual([1]);
  });

  it('takes an Observable of zen-observable, and cancels it', async () => {
    const seen: unknown[] = [];
    const zen = new ZenObservable((observer) => {
      observer.next(1);
      if (seen.length > 0) observer.complete();
      return () => seen.push('torn down');
    });
    const subscription = fromAgent(zen as never).subscribe((value) => seen.push(value));
    await turn();
    subscription.unsubscribe();
    expect(seen).toEqual([1, 'torn down']);
    expect(await all(zen as never)).toEqual([1]);
  });

  describe('takes whatever has an Observable', () => {
    afterEach(() => void Reflect.deleteProperty(Symbol, 'observable'));

    it.each([
      ['by the symbol', () => Symbol.observable],
      ['by the name of the symbol', () => '@@observable'],
    ])('%s, rather than by a subscribe of its own', async (_, keyOf) => {
      Reflect.defineProperty(Symbol, 'observable', { value: Symbol('observable'), configurable: true });
      const seen: unknown[] = [];
      const observable = {
        subscribe: ({ next }: { next(value: string): void }) => {
          next('a');
          return { unsubscribe: () => seen.push('torn down') };
        },
      };
      const library = { subscribe: (listen: () => void) => listen(), [keyOf()]: () => observable };
      const subscription = fromAgent(library as never).subscribe((value) => seen.push(value));
      subscription.unsubscribe();
      expect(seen).toEqual(['a', 'torn down']);
    });
  });

  it('takes a callbag that is pulled, as fast as `ready` allows, and ends it', async () => {
    // The types of the package have its function as the property `default`, which it is not.
    const pulling = fromIter as unknown as (values: Iterable<string>) => Callbag;
    expect(await all(pulling(['a', 'b']))).toEqual(['a', 'b']);
    let pulled = 0;
    let ended = false;
    const endless = (_: 0, sink: (kind: 0 | 1, payload: unknown) => void): void =>
      sink(0, (kind: number) => {
        if (kind === 1) sink(1, pulled++);
        else ended = true;
      });
    const waiting = deferred();
    const ready = () => (pulled === 100_000 ? waiting.promise : undefined);
    const subscription = fromAgent(endless, { ready }).subscribe();
    await expect.poll(() => pulled).toBe(100_000);
    waiting.resolve();
    await expect.poll(() => pulled).toBeGreaterThan(100_000);
    subscription.unsubscribe();
    expect(ended).toBe(true);
    const most = pulled;
    await turn();
    expect(pulled).toBe(most);
  });

  it('takes a callbag that pushes, and passes on its error', async () => {
    const seen: unknown[] = [];
    let push = (_kind: 1 | 2, _value: unknown): void => {};
    const source = (_: 0, sink: (kind: 0 | 1 | 2, payload: unknown) => void): void => {
      push = sink;
      sink(0, () => {});
    };
    fromAgent(source).subscribe({ next: (value) => seen.push(value), error: (error) => seen.push(error) });
    push(1, 'a');
    push(1, 'b');
    push(2, 'no');
    expect(seen).toEqual(['a', 'b', 'no']);
  });

  it('throws a clear error for a function that is no callbag', async () => {
    const returned = async (input: unknown, _context: unknown): Promise<unknown> => Promise.reject(input);
    await expect(all(returned as never)).rejects.toThrow('expected a callbag; got a function that returns a value');
    expect(() => fromAgent((() => 'a') as never)).toThrow('expected an Observable, a promise or an iterable');
  });

  it.each<[what: string, make: (onClosed: () => void) => AsyncIterable<string>]>([
    ['ReadableStream', (cancel) => new ReadableStream<string>({ cancel })],
    ['Readable', (onClosed) => new Readable({ read() {} }).on('close', onClosed)],
  ])('closes an idle %s that is unsubscribed at once', async (_, make) => {
    const closed = deferred();
    const work: Promise<unknown>[] = [];
    const source = make(closed.resolve);
    fromAgent(source, { pending: (one) => work.push(one) })
      .subscribe()
      .unsubscribe();
    await closed.promise;
    // A cancel waits for this work.
    await Promise.all(work);
  });

  it('throws a clear error for an object that is not a stream', () => {
    expect(() => fromAgent({ parts: [] } as never)).toThrow(
      'expected an Observable, a promise or an iterable; got object',
    );
  });

  it('runs the finally block of a generator that is unsubscribed', async () => {
    const closed = deferred();
    const endless = async function* () {
      try {
        for (;;) yield await Promise.resolve('tick');
      } finally {
        closed.resolve();
      }
    };
    const subscription = fromAgent(endless(), {
      ready: () => new Promise((resolve) => setImmediate(resolve)),
    }).subscribe();
    setImmediate(() => subscription.unsubscribe());
    await closed.promise;
  });

  it('pulls a generator no faster than `ready` allows', async () => {
    let pulled = 0;
    const endless = async function* () {
      for (;;) yield pulled++;
    };
    const subscription = fromAgent(endless(), {
      ready: () => (pulled === 3 ? new Promise<void>(() => {}) : undefined),
    }).subscribe();
    await new Promise((resolve) => setImmediate(resolve));
    expect(pulled).toBe(3);
    subscription.unsubscribe();
  });

  it('passes on the error of a generator', async () => {
    const failing = async function* () {
      yield 1;
      throw new Error('no');
    };
    await expect(all(failing())).rejects.toThrow('no');
  });

  it('returns an Observable unchanged', () => {
    expect(fromAgent(NEVER)).toBe(NEVER);
  });
});
