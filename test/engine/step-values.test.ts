import { catchError, concat, first, map, of, range, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import type { Run } from '../../src/schema/run.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { again, whole } from '../support/lives.ts';
import { processorTime } from '../support/processor-time.ts';
import { textOf as text } from '../support/run-output.ts';

const durable = (run: AgentFunction) =>
  defineAgent({ name: 'steps', description: 'Takes steps.' }, run, { durable: true });

/** The values that the agent got in the first execution, and in a replay after the last commit was lost. */
async function seen(values: readonly unknown[]): Promise<{ first: unknown[]; second: unknown[]; run: Run }> {
  const lives: unknown[][] = [];
  const agent = durable((_, context) => {
    const life: unknown[] = [];
    lives.push(life);
    return concat(
      context
        .step('values', () => of(...values))
        .pipe(
          map((value) => {
            life.push(value);
            return undefined as never;
          }),
        ),
      context.step('pause', () => timer(1).pipe(map(() => 'end'))),
    );
  });
  const first = await whole([agent]);
  const second = await again([agent], first.store, first.store.commits.length - 1);
  expect(second?.run.status).toBe(first.run.status);
  return { first: lives[0] ?? [], second: lives[1] ?? [], run: first.run };
}

const ring: { self?: unknown } = {};
ring.self = ring;

describe('a value of a step', () => {
  it.each<[string, unknown, string]>([
    ['a BigInt', 1n, 'BigInt'],
    ['a ring', ring, 'circular'],
    ['a function', () => 1, 'got function'],
    ['a symbol', Symbol('s'), 'got symbol'],
    [
      'an object whose toJSON throws',
      {
        toJSON() {
          throw new Error('no JSON');
        },
      },
      'no JSON',
    ],
  ])('that is %s fails the step with an error that names it', async (_, value, problem) => {
    const agent = durable((_, context) => context.step('odd', () => of(value)).pipe(map(() => 'never')));
    const { run } = await whole([agent]);
    expect(run.status).toBe('failed');
    expect(run.error?.message).toContain('Step odd#0 emitted a value that JSON cannot express');
    expect(run.error?.message).toContain(problem);
  });

  it('that JSON cannot express is an error that the agent may catch, and the same in a replay', async () => {
    const agent = durable((_, context) =>
      concat(
        context
          .step('odd', () => of(1n))
          .pipe(
            map(String),
            catchError((error: unknown) => of(`${String(error)}|`)),
          ),
        context.step('pause', () => timer(1).pipe(map(() => 'end'))),
      ),
    );
    const first = await whole([agent]);
    expect(text(first.run)).toMatch(/^RivuletError: Step odd#0 emitted .*\|end$/);
    const second = await again([agent], first.store, first.store.commits.length - 1);
    expect(text(second?.run ?? first.run)).toBe(text(first.run));
  });

  it('is converted to JSON in the first execution as in a replay', async () => {
    const values = [Number.NaN, { a: undefined, b: 1 }, new Date(0), [undefined], 'text', null, false];
    const { first, second } = await seen(values);
    expect(first).toStrictEqual([null, { b: 1 }, '1970-01-01T00:00:00.000Z', [null], 'text', null, false]);
    expect(second).toStrictEqual(first);
  });

  it('may be undefined', async () => {
    const { first, second } = await seen([undefined, null, undefined]);
    expect(first).toStrictEqual([undefined, null, undefined]);
    expect(second).toStrictEqual(first);
  });

  it('is a copy: the agent may change it without effect on the step', async () => {
    const before: unknown[][] = [];
    const store = new RecordingStore();
    const isKept = (text: string): boolean =>
      store.commits.flat().some(({ journal = [] }) => journal.some((line) => line.includes(text)));
    const agent = durable((_, context) =>
      context
        .step(
          'list',
          () =>
            concat(
              of({ list: [1] }),
              timer(0, 5).pipe(
                first(() => isKept('[1]')),
                map(() => ({ list: [2] })),
              ),
            ),
          (values) => {
            before.push([...values]);
            return of({ list: [3] });
          },
        )
        .pipe(
          map((value) => {
            value.list.push(9);
            return JSON.stringify(value);
          }),
        ),
    );
    const { run } = await whole([agent], undefined, undefined, store);
    expect(text(run)).toBe('{"list":[1,9]}{"list":[2,9]}');
    const second = await again([agent], store, store.commits.length - 1);
    expect(before).toStrictEqual([[{ list: [1] }]]);
    expect(text(second?.run ?? run)).toBe('{"list":[1,9]}{"list":[3,9]}');
  });

  it('costs the same, however many there are in one turn', async () => {
    const timed = async (count: number): Promise<number> => {
      const agent = durable((_, context) => context.step('many', () => range(0, count)).pipe(map(() => 'x')));
      const started = processorTime();
      const { run } = await whole([agent]);
      expect(text(run)).toHaveLength(count);
      return processorTime() - started;
    };
    await timed(2_000);
    let [few, many] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    // Four times as many values. Copying a list for each value would take sixteen times as long in each turn.
    for (let turn = 0; turn < 4 && !(many < 8 * few + 100); turn += 1) {
      few = Math.min(few, await timed(5_000));
      many = Math.min(many, await timed(20_000));
    }
    expect(many).toBeLessThan(8 * few + 100);
  });
});
