import { describe, expect, it } from 'vitest';
import { fold, reduce } from '../../src/core/fold.ts';
import { transcriptOf } from '../../src/core/history.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Message, MessagePart } from '../../src/schema/message.ts';
import type { Run } from '../../src/schema/run.ts';

const empty = (): Run => ({
  run_id: 'r',
  agent_name: 'a',
  status: 'in-progress',
  output: [],
  created_at: '2026-01-01T00:00:00.000Z',
});
const created: Event = {
  type: 'message.created',
  message: { role: 'agent/a', parts: [], created_at: '2026-01-01T00:00:00.000Z', completed_at: null },
};
const part = (content: string, more: Partial<MessagePart> & Record<string, unknown> = {}): Event => ({
  type: 'message.part',
  part: { content_type: 'text/plain', content, ...more },
});

describe('the reducer', () => {
  it('joins consecutive plain text and nothing else', () => {
    const events: Event[] = [
      created,
      part('a'),
      part('b'),
      part('c', { name: 'artifact' }),
      part('d'),
      part('ZQ==', { content_encoding: 'base64' }),
      part('f'),
      part('g', { content_encoding: 'plain' }),
      part('h', { metadata: { kind: 'citation', start_index: 0 } }),
      part('<i>', { content_type: 'text/html' }),
      part('<j>', { content_type: 'text/html' }),
      part('k', { extra: 1 }),
    ];
    const run = events.reduce(reduce, empty());
    expect(run.output[0]?.parts.map(({ content }) => content)).toEqual([
      'ab',
      'c',
      'd',
      'ZQ==',
      'fg',
      'h',
      '<i>',
      '<j>',
      'k',
    ]);
  });

  it('never changes its input', () => {
    const events: Event[] = [created, part('a'), part('b'), part('c', { name: 'x' }), part('d'), created, part('e')];
    const seen: [Run, string][] = [];
    let run = empty();
    for (const event of events) {
      seen.push([run, JSON.stringify(run)]);
      run = reduce(run, event);
    }
    for (const [before, text] of seen) expect(JSON.stringify(before)).toBe(text);
  });

  it('returns the same Run as folding in place', () => {
    const done = { role: 'agent/a', parts: [{ content: 'ab' }], completed_at: '2026-01-01T00:00:01.000Z' };
    const events: Event[] = [
      created,
      part('a'),
      part('b'),
      { type: 'message.completed', message: done },
      { type: 'generic', generic: { a: 1 } },
      created,
      part('c'),
      { type: 'error', error: { code: 'server_error', message: 'y' } },
    ];
    expect(events.reduce(fold, empty())).toEqual(events.reduce(reduce, empty()));
    expect(events.reduce(reduce, empty()).output).toHaveLength(2);
  });

  it('takes the Run of a run event as it is', () => {
    const run: Run = { ...empty(), status: 'completed', finished_at: '2026-01-01T00:00:02.000Z' };
    expect(reduce(empty(), { type: 'run.completed', run })).toBe(run);
  });

  it('keeps the output at a run event that does not carry it', () => {
    const before = [created, part('a')].reduce(reduce, empty());
    const awaiting: Event = { type: 'run.awaiting', run: { ...empty(), status: 'awaiting' } };
    expect(reduce(before, awaiting)).toEqual({ ...before, status: 'awaiting' });
    expect(fold(structuredClone(before), awaiting)).toEqual({ ...before, status: 'awaiting' });
  });

  it('ignores generic and error events', () => {
    const run = empty();
    expect(reduce(run, { type: 'generic', generic: {} })).toBe(run);
    expect(reduce(run, { type: 'error', error: { code: 'server_error', message: 'b' } })).toBe(run);
  });
});

describe('the questions of a Run', () => {
  const now = '2026-01-01T00:00:00.000Z';
  const message = (role: string, content: string): Message => ({
    role,
    parts: [{ content }],
    created_at: now,
    completed_at: now,
  });
  const asked = (id: string): Event => {
    const await_request = { type: 'message' as const, id, message: message('agent/a', `question ${id}`) };
    return { type: 'run.awaiting', run: { ...empty(), status: 'awaiting', await_request } };
  };
  const replied = (id: string): Event => {
    const await_resume = { type: 'message' as const, id, message: message('user', `reply ${id}`) };
    return { type: 'run.in-progress', run: { ...empty(), await_resume } };
  };
  const said = (content: string): Event => ({ type: 'message.completed', message: message('agent/a', content) });
  const events = [said('one'), asked('1'), replied('1'), said('two'), said('three'), asked('2')];

  it('are the same for fold and reduce, which never changes its input', () => {
    const seen: [Run, string][] = [];
    let run = empty();
    for (const event of events) {
      seen.push([run, JSON.stringify(run)]);
      run = reduce(run, event);
    }
    expect(seen.map(([before]) => JSON.stringify(before))).toEqual(seen.map(([, text]) => text));
    expect(structuredClone(events).reduce(fold, empty())).toEqual(run);
    expect(run.questions?.map(({ request, reply, position }) => [request.id, reply?.id, position])).toEqual([
      ['1', '1', 1],
      ['2', undefined, 3],
    ]);
    expect(run.await_resume).toBeUndefined();
  });

  it('stand in their places in the transcript', () => {
    const run = [...events, replied('2')].reduce(reduce, empty());
    expect(transcriptOf(run).map(({ parts }) => parts[0]?.content)).toEqual([
      'one',
      'question 1',
      'reply 1',
      'two',
      'three',
      'question 2',
      'reply 2',
    ]);
  });
});
