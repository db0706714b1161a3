import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encode, runInside } from '../../src/core/encode.ts';
import { runEventOf, tokenIn } from '../../src/core/recognize.ts';
import type { Event } from '../../src/schema/event.ts';
import { anyText } from '../support/unicode.ts';

const token = (content: string): Event => ({ type: 'message.part', part: { content_type: 'text/plain', content } });

describe('an encoded event', () => {
  it('equals the output of JSON.stringify when parsed, for any text', () => {
    fc.assert(
      fc.property(anyText(), (content) => {
        const event = token(content);
        // Both escape lone surrogates, so the parsed values are equal.
        expect(JSON.parse(encode(event))).toEqual(JSON.parse(JSON.stringify(event)));
      }),
    );
  });

  it('is one line for every client, whatever line breaks that client knows', () => {
    const line = encode(token('a\u2028b\u2029c\u0085d\ne\rf'));
    expect(line).not.toMatch(/[\u2028\u2029\u0085\n\r]/);
    expect(JSON.parse(line).part.content).toBe('a\u2028b\u2029c\u0085d\ne\rf');
  });

  it('keeps every field of a part that is not a plain token', () => {
    const event: Event = {
      type: 'message.part',
      part: { content_type: 'text/plain', content: 'a', name: 'b', ...{ x: 1 } },
    };
    expect(JSON.parse(encode(event))).toEqual(event);
  });

  it('gives the content of a plain token as JSON without being parsed, and of no other part', () => {
    fc.assert(
      fc.property(anyText(), (content) => {
        const line = encode(token(content));
        expect(tokenIn(line)).toBe(JSON.stringify(JSON.parse(line).part.content));
      }),
      { examples: [['a"b'], ['"'], ['\\'], ['\\"'], ['\\\\'], ['']] },
    );
    const odd = { content_type: 'text/plain', content: 'a', metadata: { kind: 'citation' as const, title: '"}}' } };
    expect(tokenIn(encode({ type: 'message.part', part: odd }))).toBeUndefined();
    expect(
      tokenIn(encode({ type: 'message.part', part: { content_type: 'text/html', content: 'a' } })),
    ).toBeUndefined();
  });

  it('keeps every field of messages and runs, plain or not', () => {
    const text = anyText();
    const part = fc.oneof(
      fc.record({ content_type: fc.constant('text/plain'), content: text }),
      fc.record(
        { content: text, content_type: fc.constant('text/plain'), name: text },
        { requiredKeys: ['content_type'] },
      ),
    );
    const time = fc.constant('2026-01-31T12:00:00Z');
    const message = fc.oneof(
      fc.record({
        parts: fc.array(part),
        role: fc.constantFrom('user', 'agent/a'),
        created_at: time,
        completed_at: fc.option(time),
      }),
      fc.record(
        { role: fc.constant('user'), parts: fc.array(part), created_at: time, completed_at: time, note: text },
        { requiredKeys: ['role', 'parts'] },
      ),
    );
    const run = fc.record(
      {
        run_id: fc.uuid(),
        agent_name: fc.constant('a'),
        session_id: fc.uuid(),
        status: fc.constantFrom('created', 'in-progress', 'completed'),
        output: fc.array(message),
        created_at: time,
        finished_at: time,
        error: fc.constant({ code: 'server_error', message: '"' }),
      },
      { requiredKeys: ['run_id', 'agent_name', 'status', 'output', 'created_at'] },
    );
    const event = fc.oneof(
      fc.record({ type: fc.constantFrom('message.created', 'message.completed'), message }),
      fc.record({ type: fc.constantFrom('run.created', 'run.completed'), run }),
    );
    fc.assert(
      fc.property(event, (given) => {
        const line = encode(given as Event);
        expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(given)));
        expect(line).not.toMatch(/[\u2028\u2029\u0085\n\r]/);
      }),
    );
  });

  it('reveals its status and its Run without being parsed', () => {
    const run = { run_id: 'r', agent_name: 'a', status: 'completed' as const, output: [], created_at: 'now' };
    const line = encode({ type: 'run.completed', run });
    expect(runEventOf(line)).toBe('completed');
    expect(JSON.parse(runInside(line))).toEqual(run);
    expect(runEventOf(encode(token('{"type":"run.completed","run":')))).toBeUndefined();
  });
});
