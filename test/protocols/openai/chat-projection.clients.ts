import fc from 'fast-check';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { describe, expect, it } from 'vitest';
import { Projector } from '../../../src/http/sse/projection.ts';
import { chatProjection, completionObject } from '../../../src/protocols/openai/chat-projection.ts';
import { logs } from '../../support/logs.ts';
import { expectExactRest, framesOf } from '../continues.ts';
import { expectAllTokens } from './all-tokens.ts';

const projection = chatProjection({ usage: true, tools: ['browse'], whole: true });

describe('chat completions of any log', () => {
  it('continue exactly after any frame', () => expectExactRest(projection));

  it('lose no text, also of an agent that speaks while it awaits', () => {
    expectAllTokens((log) =>
      framesOf(projection, log)
        .flatMap((frame) => (frame.includes('[DONE]') ? [] : (JSON.parse(frame.slice('data: '.length)).choices ?? [])))
        .map(({ delta }) => delta.content ?? '')
        .join(''),
    );
  });

  it('fold in the official client to the completion that the log has', async () => {
    await fc.assert(
      fc.asyncProperty(logs, async (log) => {
        const projector = new Projector(projection);
        let chunks: unknown[] = [];
        for (const [index, line] of log.entries()) {
          const over = projector.state.outcome !== undefined;
          const frames = projector.take(line, index + 1);
          if (over && frames.length > 0) chunks = [];
          for (const frame of frames)
            if (!frame.includes('[DONE]')) chunks.push(JSON.parse(frame.slice('data: '.length)));
          const { outcome } = projector.state;
          // The client folds one completion, and throws the error of a failed one.
          if (over || outcome === undefined || outcome.finish === 'error') continue;
          const lines = chunks.map((chunk) => `${JSON.stringify(chunk)}\n`).join('');
          const body = new Response(lines).body;
          if (body === null) throw new Error('no body');
          const folded = await ChatCompletionStream.fromReadableStream(body).finalChatCompletion();
          const { choices, id } = JSON.parse(completionObject(projector.state));
          expect([folded.id, folded.choices[0]?.finish_reason]).toEqual([id, choices[0].finish_reason]);
          // The stream does not say that there is no text.
          expect(folded.choices[0]?.message.content || null).toBe(choices[0].message.content || null);
          expect(folded.choices[0]?.message.tool_calls ?? []).toMatchObject(choices[0].message.tool_calls ?? []);
        }
      }),
      { numRuns: 60 },
    );
  });
});
