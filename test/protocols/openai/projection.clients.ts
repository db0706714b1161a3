import fc from 'fast-check';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { describe, expect, it } from 'vitest';
import { beginning, type Position, Projector } from '../../../src/http/sse/projection.ts';
import { echoOf, responseObject } from '../../../src/protocols/openai/response-object.ts';
import { responsesProjection } from '../../../src/protocols/openai/responses-projection.ts';
import { logs } from '../../support/logs.ts';
import { expectExactRest, framesFrom, framesOf } from '../continues.ts';
import { expectAllTokens } from './all-tokens.ts';

const echo = echoOf({ protocol: 'openai' });
const projection = responsesProjection(echo);

/** The events of frames; the last frame of a response is no event. */
function eventsOf(frames: readonly string[]): ResponseStreamEvent[] {
  return frames.flatMap((frame) => {
    const [, type, data = ''] = /^(?:event: (.*)\n)?data: (.*)\n\n$/.exec(frame) ?? [];
    if (data === '[DONE]') return [];
    const event: ResponseStreamEvent = JSON.parse(data);
    expect(event.type).toBe(type);
    return [event];
  });
}

/** Folds events as OpenAI's client does, to one response for each that begins. */
function responsesOf(events: readonly ResponseStreamEvent[]): Response[] {
  const responses: Response[] = [];
  for (const event of events) {
    const last = event.type === 'response.created' ? undefined : responses.pop();
    responses.push(accumulateResponse(event, last));
  }
  return responses;
}

/** What OpenAI's client adds. */
const withoutText = ({ output_text: _, ...response }: Response): object => response;

describe('Responses of any log', () => {
  it('continue exactly after any frame', () => expectExactRest(projection));

  it('fold in the official client to the response that the log has', () => {
    fc.assert(
      fc.property(logs, (log) => {
        const folded = responsesOf(eventsOf(framesOf(projection, log)));
        const projector = new Projector(projection);
        const finals = new Map<string, unknown>();
        for (const [index, line] of log.entries()) {
          projector.take(line, index + 1);
          const { response, open } = projector.state;
          if (response !== undefined && open === undefined)
            finals.set(response.id, JSON.parse(responseObject(echo, response)));
        }
        expect(folded.map(({ id }) => id)).toEqual([...finals.keys()]);
        for (const response of folded) {
          // An item that is open has no end yet.
          if (response.status === 'in_progress') continue;
          expect(withoutText(response)).toEqual(finals.get(response.id));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('lose no text, also of an agent that speaks while it awaits', () => {
    expectAllTokens((log) =>
      responsesOf(eventsOf(framesOf(projection, log)))
        .flatMap(({ output }) => output.flatMap((item) => (item.type === 'message' ? item.content : [])))
        .map((content) => (content.type === 'output_text' ? content.text : ''))
        .join(''),
    );
  });

  it('have numbers that only grow, and ids that no other item has', () => {
    fc.assert(
      fc.property(logs, (log) => {
        const events = eventsOf(framesOf(projection, log));
        const numbers = events.map((event) => event.sequence_number);
        expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
        const items = responsesOf(events).flatMap(({ output }) => output.map((item) => item.id));
        expect(new Set(items).size).toBe(items.length);
      }),
      { numRuns: 40 },
    );
  });

  it('fold to the same, cut after any number and resumed there', async () => {
    await fc.assert(
      fc.asyncProperty(logs, fc.nat(), async (log, anywhere) => {
        const all = eventsOf(framesOf(projection, log));
        const cut = anywhere % (all.length + 1);
        const before = all.slice(0, cut);
        const seen = before.at(-1)?.sequence_number ?? 0;
        const position: Position = cut === 0 ? beginning : { event: Math.floor(seen / 16), frames: (seen % 16) + 1 };
        const rest = eventsOf(await framesFrom(projection, log, position));
        expect(responsesOf([...before, ...rest])).toEqual(responsesOf(all));
      }),
      { numRuns: 60 },
    );
  });
});
