import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encode, runEventOf, runInside } from '../../src/core/encode.ts';
import type { Event } from '../../src/schema/event.ts';

const token = (content: string): Event => ({ type: 'message.part', part: { content_type: 'text/plain', content } });

describe('an encoded event', () => {
  it('equals the output of JSON.stringify when parsed, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (content) => {
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

  it('reveals its status and its Run without being parsed', () => {
    const run = { run_id: 'r', agent_name: 'a', status: 'completed' as const, output: [], created_at: 'now' };
    const line = encode({ type: 'run.completed', run });
    expect(runEventOf(line)).toBe('completed');
    expect(JSON.parse(runInside(line))).toEqual(run);
    expect(runEventOf(encode(token('{"type":"run.completed","run":')))).toBeUndefined();
  });
});
