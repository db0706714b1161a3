import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tokenIn } from '../../src/core/recognize.ts';
import type { Projection } from '../../src/http/sse/projection.ts';
import { agUiFrames } from '../../src/protocols/ag-ui/projection.ts';
import { uiStream } from '../../src/protocols/ai-sdk/projection.ts';
import { chatProjection } from '../../src/protocols/openai/chat-projection.ts';
import { echoOf } from '../../src/protocols/openai/response-object.ts';
import { responsesProjection } from '../../src/protocols/openai/responses-projection.ts';
import { busyLogs, logs } from '../support/logs.ts';
import { framesOf } from './continues.ts';

/** The same event with its keys in another order, which each protocol parses. */
function unspliced(line: string): string {
  const token = tokenIn(line);
  if (token === undefined) return line;
  const other = `{"type":"message.part","part":{"content":${token},"content_type":"text/plain"}}`;
  expect(tokenIn(other)).toBeUndefined();
  return other;
}

/** The lines of frames; a line of JSON as its value, which may be escaped in several ways. */
const linesOf = (frames: readonly string[]): unknown[] =>
  frames.map((frame) =>
    frame.split('\n').map((line) => (line.startsWith('data: {') ? JSON.parse(line.slice('data: '.length)) : line)),
  );

function expectSame<State>(projection: Projection<State>): void {
  fc.assert(
    fc.property(fc.oneof(logs, busyLogs), (log) => {
      expect(linesOf(framesOf(projection, log))).toEqual(linesOf(framesOf(projection, log.map(unspliced))));
    }),
  );
}

describe('a token that is put into its frame without being parsed', () => {
  it('has the frame of a parsed one in the AI SDK', () => expectSame(uiStream));

  it('has the frame of a parsed one in AG-UI', () =>
    expectSame(agUiFrames({ threadId: 'thread', runId: 'run', modern: true, tools: ['browse'] })));

  it('has the frame of a parsed one in OpenAI’s Responses', () =>
    expectSame(responsesProjection(echoOf({ protocol: 'openai' }))));

  it('has the frame of a parsed one in OpenAI’s Chat Completions', () =>
    expectSame(chatProjection({ usage: true, tools: ['ask_user', 'browse'], whole: true })));
});
