import { JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encode } from '../../../src/core/encode.ts';
import { Projector } from '../../../src/http/sse/projection.ts';
import { placeIn } from '../../../src/protocols/mcp/event-ids.ts';
import { mcpFrames, type ProjectedCall } from '../../../src/protocols/mcp/projection.ts';
import { busyLogs, logs } from '../../support/logs.ts';
import { expectExactRest, framesOf } from '../continues.ts';

const run_id = '01990000-0000-7000-8000-000000000001';
const base: ProjectedCall = {
  id: 'a "call"',
  token: 7,
  modern: true,
  asks: true,
  everyToken: false,
  run_id,
  begins: true,
  outputSchema: undefined,
  stateOf: ({ question }) => `state ${question}`,
};

const calls: [name: string, call: ProjectedCall][] = [
  ['modern', base],
  ['modern, each token', { ...base, id: 1, everyToken: true }],
  ['modern, without forms and progress', { ...base, token: undefined, asks: false }],
  ['of the older era', { ...base, modern: false, token: 'a "token"' }],
  ['of the older era, each token', { ...base, modern: false, begins: false, everyToken: true }],
];

const dataOf = (frame: string): string => /^data: (.*)$/m.exec(frame)?.[1] ?? '';
const idOf = (frame: string): string => /^id: (.*)$/m.exec(frame)?.[1] ?? '';

describe.each(calls)('the frames of a call that is %s', (_, call) => {
  it('go on exactly after any frame of any log', () => expectExactRest(mcpFrames(call)));

  it('are messages of the protocol; progress increases, and each id leads back to the call', () => {
    fc.assert(
      fc.property(fc.oneof(logs, busyLogs), (log) => {
        let before = 0;
        for (const frame of framesOf(mcpFrames(call), log)) {
          const { n, call: known, run_id: run } = placeIn(idOf(frame));
          const { id, token, modern, asks, everyToken } = call;
          expect([run, known]).toEqual([
            run_id,
            { id, ...(token !== undefined && { token }), modern, asks, everyToken },
          ]);
          expect(n).toBeGreaterThan(before);
          before = n;
          const data = dataOf(frame);
          if (data === '') continue;
          const message = JSONRPCMessageSchema.parse(JSON.parse(data));
          if ('method' in message && message.method === 'notifications/progress') {
            expect(message.params).toMatchObject({ progressToken: token, progress: n });
          } else if ('result' in message) expect(message.id).toBe(id);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('progress', () => {
  const said = (texts: readonly string[]): string[] =>
    texts.map((content) => encode({ type: 'message.part', part: { content_type: 'text/plain', content } }));
  const messages = (call: ProjectedCall, texts: readonly string[]): unknown[] => {
    const pieces = new Projector(mcpFrames(call)).piecesOf({ first: 3, lines: said(texts) });
    const frames = pieces.flatMap(({ text }) => text.split('\n\n').filter((frame) => frame !== ''));
    return frames.map((frame) => JSON.parse(dataOf(frame)).params.message);
  };

  it('of the tokens of a batch is one notification, with the line that the agent writes', () => {
    expect(messages(base, ['One', ' two.\nThr', 'ee'])).toEqual(['Three']);
    expect(messages(base, ['One', ' two.\n'])).toEqual(['One two.']);
    expect(messages(base, ['x'.repeat(1_000), 'end'])).toEqual([expect.stringMatching(/^x{197}end$/)]);
  });

  it('is each token, where the client asks for them', () => {
    expect(messages({ ...base, everyToken: true }, ['One', ' two.\n"Thr', 'ee'])).toEqual(['One', ' two.\n"Thr', 'ee']);
  });
});
