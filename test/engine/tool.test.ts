import { defineAgent, type MessagePart } from 'rivulet';
import { cutEverywhere, Effects, runAgent } from 'rivulet/testing';
import { concat, defer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { again, whole } from '../support/lives.ts';

const steps = (parts: readonly MessagePart[]) => parts.flatMap(({ metadata }) => metadata ?? []);
const at = expect.stringMatching(/^\d{4}-.*Z$/);

describe('context.tool', () => {
  it('shows a call when it begins and when it has its result, and returns the result', async () => {
    let began = 0;
    const weather = defineAgent({ name: 'weather', description: '?' }, async function* (_, context) {
      const calls = [
        context.tool('look-up', { city: 'Oslo' }, async ({ city }) => ({ city, degrees: 20, order: ++began })),
        context.tool('add', { a: 1 }, ({ a }) => a + 1),
      ] as const;
      const { degrees, city } = yield* calls[0];
      yield `${city}: ${degrees + (yield* calls[1])}`;
    });
    const { run } = await runAgent(weather, '?');
    const parts = run.output[0]?.parts ?? [];
    expect(steps(parts)).toEqual([
      { kind: 'trajectory', tool_name: 'look-up', tool_call_id: 'tool/1', tool_input: { city: 'Oslo' } },
      {
        kind: 'trajectory',
        tool_name: 'look-up',
        tool_call_id: 'tool/1',
        tool_output: { city: 'Oslo', degrees: 20, order: 1 },
        started_at: at,
        ended_at: at,
      },
      { kind: 'trajectory', tool_name: 'add', tool_call_id: 'tool/2', tool_input: { a: 1 } },
      {
        kind: 'trajectory',
        tool_name: 'add',
        tool_call_id: 'tool/2',
        tool_output: { value: 2 },
        started_at: at,
        ended_at: at,
      },
    ]);
    expect(parts.at(-1)?.content).toBe('Oslo: 22');
  });

  it('shows an error as that of the call, and throws it: the agent may go on', async () => {
    const careful = defineAgent({ name: 'careful', description: '?' }, async function* (_, context) {
      try {
        yield* context.tool('pay', { amount: 3 }, () => {
          throw new Error('The card is blocked.');
        });
      } catch (error) {
        yield `Sorry: ${Object(error).message}`;
      }
    });
    const { run } = await runAgent(careful, '?');
    expect(run.status).toBe('completed');
    const parts = run.output[0]?.parts ?? [];
    expect(steps(parts).at(-1)).toEqual({
      kind: 'trajectory',
      tool_name: 'pay',
      tool_call_id: 'tool/1',
      tool_error: 'The card is blocked.',
    });
    expect(parts.at(-1)?.content).toBe('Sorry: The card is blocked.');
  });

  it('is done once in a durable run, which ends the same after a crash at any point', async () => {
    const done: string[] = [];
    const durable = defineAgent(
      { name: 'durable', description: '?' },
      async function* (_, context) {
        const first = yield* context.tool('first', {}, () => ({ id: `${done.push('first') > 0}` }));
        yield first.id;
        try {
          yield* context.tool('second', {}, () => {
            throw new Error('It is down.');
          });
        } catch {
          yield ' without the second';
        }
      },
      { durable: true },
    );
    const { run, cuts } = await cutEverywhere(durable, '?');
    expect([run.status, cuts > 1]).toEqual(['completed', true]);
  });

  it('may be in the work of a step, which ends the same after a crash at any point', async () => {
    const nests = defineAgent(
      { name: 'nests', description: '?' },
      (_, context) =>
        concat(
          context.step('outer', () => context.tool('first', {}, () => 'done')),
          defer(() => context.tool('second', {}, () => 'done as well')),
        ),
      { durable: true },
    );
    const { run, cuts } = await cutEverywhere(nests, '?');
    expect([run.status, cuts > 1]).toEqual(['completed', true]);
    const ids = steps(run.output[0]?.parts ?? []).map((step) => 'tool_call_id' in step && step.tool_call_id);
    expect(ids).toEqual(['tool/outer#0.1', 'tool/outer#0.1', 'tool/1', 'tool/1']);
  });

  it('is not done again after a crash where it is not repeatable: its outcome is unknown', async () => {
    const effects = new Effects();
    let payments = 0;
    const told = new Set<string>();
    const pays = defineAgent(
      { name: 'pays', description: '?' },
      async function* (_, context) {
        const work = async () => {
          payments += 1;
          // Each payment has a number of its own, so a second one for the same call is noticed.
          effects.add('pay', payments);
          await new Promise(setImmediate);
          return 'paid';
        };
        try {
          yield yield* context.tool('pay', {}, work, { repeatable: false });
        } catch (error) {
          told.add(Object(error).code);
          yield 'unknown';
        }
      },
      { durable: true },
    );
    const { run } = await cutEverywhere(pays, '?', { effects, endOf: ({ status }) => status });
    expect(run.status).toBe('completed');
    expect([...told]).toEqual(['tool_call_unknown']);
  });

  it('is not done again by an agent that is not durable, where a durable one awaits its answer', async () => {
    const effects = new Effects();
    let payments = 0;
    const told = new Set<string>();
    const pays = defineAgent({ name: 'pays', description: '?' }, async function* (_, context) {
      yield* context.tool('pay', {}, async () => effects.add('pay', ++payments), { repeatable: false });
      yield 'paid';
    });
    const asks = defineAgent(
      { name: 'asks', description: '?' },
      async function* (_, context) {
        try {
          yield `They ${(await context.call('pays', 'Ada')).parts.at(-1)?.content}.`;
        } catch (error) {
          told.add(`${Object(error).code}: ${Object(error).message}`);
          yield 'It is not known.';
        }
      },
      { durable: true },
    );
    const calls = { pays };
    const { run } = await cutEverywhere(asks, '?', { effects, calls, endOf: ({ status }) => status });
    expect(run.output[0]?.parts.at(-1)?.content).toBe('They paid.');
    expect([...told]).toEqual([
      'tool_call_unknown: The process ended while agent pays ran a tool. Whether it took effect is unknown.',
    ]);
  });

  it('has a known outcome after a crash where it has returned nothing', async () => {
    const notes = defineAgent(
      { name: 'notes', description: '?' },
      async function* (_, context) {
        yield* context.tool('note', {}, async () => undefined, { repeatable: false });
        yield 'noted';
      },
      { durable: true },
    );
    // With this limit, the end of a step is a commit of its own.
    const limits = { backlog: 1 };
    const { store } = await whole([notes], undefined, limits);
    const kept = store.commits.findIndex((writes) => JSON.stringify(writes).includes('ended_at')) + 1;
    const ended = await again([notes], store, kept, undefined, limits);
    expect(ended?.run.output[0]?.parts.at(-1)?.content).toBe('noted');
  });
});
