import { firstValueFrom, NEVER, of, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { fromAgent } from '../../src/core/from-agent.ts';

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

  it('throws a clear error for an object that is not a stream', () => {
    expect(() => fromAgent({ parts: [] } as never)).toThrow(
      'expected an Observable, a promise or an iterable; got object',
    );
  });

  it('runs the finally block of a generator that is unsubscribed', async () => {
    const closed = withResolvers();
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

function withResolvers() {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
