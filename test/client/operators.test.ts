import type { Event, MessagePart, Run } from 'rivulet';
import { messages, parts, text, toRun } from 'rivulet/client';
import { from, lastValueFrom, type OperatorFunction, toArray } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { describe, expect, it } from 'vitest';

const time = '2026-01-01T00:00:00.000Z';
const role = 'agent/a';
const run: Run = { run_id: 'r', agent_name: 'a', status: 'in-progress', output: [], created_at: time };
const part = (content: string, more: Partial<MessagePart> = {}): Event => ({
  type: 'message.part',
  part: { content_type: 'text/plain', content, ...more },
});
const answer = {
  role,
  parts: [{ content_type: 'text/plain', content: 'Hi you' }],
  created_at: time,
  completed_at: time,
};

/** A run's events as letters. */
const events: Record<string, Event> = {
  c: { type: 'run.created', run: { ...run, status: 'created' } },
  p: { type: 'run.in-progress', run },
  '(': { type: 'generic', generic: { progress: 1 } },
  m: { type: 'message.created', message: { role, parts: [], created_at: time, completed_at: null } },
  1: part('Hi '),
  2: part('you'),
  t: part('Looked it up.', { metadata: { kind: 'trajectory', tool_name: 'search' } }),
  n: part('a,b', { name: 'table.csv', content_type: 'text/csv' }),
  b: part('aGk=', { content_encoding: 'base64' }),
  j: part('{}', { content_type: 'application/json' }),
  '0': part(''),
  M: { type: 'message.completed', message: answer },
  C: { type: 'run.completed', run: { ...run, status: 'completed', output: [answer], finished_at: time } },
  F: {
    type: 'run.failed',
    run: {
      ...run,
      status: 'failed',
      error: { code: 'server_error', message: 'No luck.', data: { dice: 1, code: 'no_luck' } },
    },
  },
  X: { type: 'run.cancelled', run: { ...run, status: 'cancelled' } },
};
const failed = {
  name: 'ClientError',
  code: 'server_error',
  message: 'No luck.',
  status: 200,
  data: { dice: 1, code: 'no_luck' },
};

/** The results of a run as marble diagrams. */
function expectOf<T>(operator: OperatorFunction<Event, T>, line: string, result: string, values: Record<string, T>) {
  const scheduler = new TestScheduler((actual, expected) => {
    // Errors are compared by their message.
    expect(JSON.parse(JSON.stringify(actual))).toEqual(JSON.parse(JSON.stringify(expected)));
  });
  scheduler.run(({ cold, expectObservable }) => {
    expectObservable(cold(line, events).pipe(operator)).toBe(result, values, failed);
  });
}

describe('text()', () => {
  it('emits the text so far, each time that it grows', () => {
    expectOf(text(), '-c-p-m-1-2-M-C|', '-------a-b----|', { a: 'Hi ', b: 'Hi you' });
  });

  it('leaves out steps, artifacts, data and empty parts', () => {
    expectOf(text(), '-c-m-1-t-n-b-j-0-M-C|', '-----a--------------|', { a: 'Hi ' });
  });

  it('puts a blank line between messages, once the next one has text', () => {
    expectOf(text(), '-c-m-1-M-m-t-2-M-C|', '-----a-------b----|', { a: 'Hi ', b: 'Hi \n\nyou' });
  });

  it('completes without an error if the run is cancelled', () => {
    expectOf(text(), '-c-m-1-X|', '-----a--|', { a: 'Hi ' });
  });
});

describe('parts() and messages()', () => {
  it('parts() emits every part', () => {
    expectOf(parts(), '-c-m-1-t-M-C|', '-----1-t----|', {
      1: { content_type: 'text/plain', content: 'Hi ' },
      t: {
        content_type: 'text/plain',
        content: 'Looked it up.',
        metadata: { kind: 'trajectory', tool_name: 'search' },
      },
    });
  });

  it('messages() emits each message when it is complete', () => {
    expectOf(messages(), '-c-m-1-2-M-C|', '---------M--|', { M: answer });
  });

  it.each<[string, OperatorFunction<Event, unknown>]>([
    ['text', text()],
    ['parts', parts()],
    ['messages', messages()],
  ])('%s() errors where the run fails, with its code, message and data', async (_name, operator) => {
    const line = from(['c', 'm', 'F'].map((key) => events[key] as Event));
    const error = await lastValueFrom(line.pipe(operator)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ ...failed, retryable: false });
  });
});

describe('toRun()', () => {
  it('is the Run after each event, also of a failed one', () => {
    const runWith = (...parts: MessagePart[]): Run => ({ ...run, output: [{ role, parts, created_at: time }] });
    expectOf(toRun(), '-c-p-m-1-2-F|', '-c-p-m-1-2-F|', {
      c: { ...run, status: 'created' },
      p: run,
      m: runWith(),
      1: runWith({ content_type: 'text/plain', content: 'Hi ' }),
      2: runWith({ content_type: 'text/plain', content: 'Hi you' }),
      F: (events.F as { run: Run }).run,
    });
  });

  it('continues from a given Run, for a reader that starts in the middle', () => {
    const before: Run = { ...run, output: [{ role, parts: [{ content_type: 'text/plain', content: 'Hi ' }] }] };
    const after = { ...run, output: [{ role, parts: [{ content_type: 'text/plain', content: 'Hi you' }] }] };
    expectOf(toRun(before), '-2|', '-2|', { 2: after });
    expectOf(toRun(), '-2-C|', '---C|', { C: (events.C as { run: Run }).run });
  });

  it('keeps the identity of objects that an event does not change', async () => {
    const line = from(['c', 'm', '1', 'M', 'm', '2', '('].map((key) => events[key] as Event));
    const [, , , first, , second, last] = await lastValueFrom(line.pipe(toRun(), toArray()));
    expect(second).not.toBe(first);
    expect(second?.output[0]).toBe(first?.output[0]);
    expect(last).toBe(second);
  });

  it('keeps the output at events that do not repeat it', async () => {
    const awaiting: Event = { type: 'run.awaiting', run: { ...run, status: 'awaiting' } };
    const sent = ['c', 'p', 'm', '1', '2', 'M'].map((key) => events[key] as Event);
    const runs = await lastValueFrom(from([...sent, awaiting, events.p as Event]).pipe(toRun(), toArray()));
    expect(runs.slice(-2)).toEqual([
      { ...run, status: 'awaiting', output: [answer] },
      { ...run, output: [answer] },
    ]);
    // The result is the same if a server repeats the output in each event.
    const whole: Event = { type: 'run.awaiting', run: { ...run, status: 'awaiting', output: [answer] } };
    expect(await lastValueFrom(from([...sent, whole]).pipe(toRun()))).toEqual(whole.run);
    // The last event has the whole output, even if it is empty.
    const cancelled = { ...run, status: 'cancelled' as const };
    expect(await lastValueFrom(from([...sent, events.X as Event]).pipe(toRun()))).toEqual(cancelled);
  });

  it('joins the tokens of a long run into one part', async () => {
    const tokens = Array.from({ length: 20_000 }, (_, n) => part(`t${n} `));
    const last = await lastValueFrom(from([events.c, events.m, ...tokens] as Event[]).pipe(toRun()));
    expect(last.output[0]?.parts).toHaveLength(1);
    expect(last.output[0]?.parts[0]?.content).toHaveLength(tokens.reduce((sum, _, n) => sum + `t${n} `.length, 0));
  });

  it('continues after an event type of a newer server', async () => {
    const newer = JSON.parse('{"type":"dream.began"}') as Event;
    const line = [events.c, events.m, events['1'], newer, events['2']] as Event[];
    expect((await lastValueFrom(from(line).pipe(toRun()))).output[0]?.parts[0]?.content).toBe('Hi you');
  });
});
