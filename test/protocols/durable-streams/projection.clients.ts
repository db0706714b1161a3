import { setImmediate as nextTurn } from 'node:timers/promises';
import { BackoffDefaults, stream } from '@durable-streams/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { after } from '../../../src/http/sse/projection.ts';
import { sharedProjections } from '../../../src/protocols/durable-streams/projection.ts';
import { offsetAfter } from '../../../src/protocols/durable-streams/request.ts';
import { logs } from '../../support/logs.ts';
import { expectExactRest, framesFrom } from '../continues.ts';

const projection = sharedProjections()('7');

/** Answers as the server would: each connection has the frames after its offset, the first ones only so many. */
function serving(log: readonly string[], ends: readonly number[], signal: AbortSignal): typeof fetch {
  let connection = 0;
  return async (input) => {
    // The client asks again at once for a log that has no end, also after it was cancelled.
    await nextTurn();
    signal.throwIfAborted();
    const query = new URL(String(input)).searchParams;
    if (query.get('live') === null) {
      const headers = { 'content-type': 'application/json', 'stream-up-to-date': 'true' };
      return new Response('[]', { headers: { ...headers, 'stream-next-offset': offsetAfter(0) } });
    }
    const frames = await framesFrom(projection, log, after(Number(query.get('offset'))));
    const text = frames.slice(0, ends[connection] ?? frames.length).join('');
    connection += 1;
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } });
  };
}

describe('the frames of Durable Streams', () => {
  it('go on exactly after any frame of any log', () => expectExactRest(projection));

  it('are read by the client as the events of the log, wherever its connections end', async () => {
    await fc.assert(
      fc.asyncProperty(logs, fc.array(fc.nat(12), { maxLength: 3 }), async (log, ends) => {
        const enough = new AbortController();
        const response = await stream({
          url: 'http://127.0.0.1/',
          live: 'sse',
          fetch: serving(log, ends, enough.signal),
          backoffOptions: { ...BackoffDefaults, maxRetries: 0 },
          sseResilience: { minConnectionDuration: 0 },
          warnOnHttp: false,
        });
        response.closed.catch(() => undefined);
        const read: unknown[] = [];
        for await (const event of response.jsonStream()) {
          read.push(event);
          if (read.length < log.length) continue;
          enough.abort();
          break;
        }
        expect(read).toEqual(log.map((line) => JSON.parse(line)));
      }),
      { numRuns: 100 },
    );
  });

  it('are shared by the readers of an interval', () => {
    const projectionWith = sharedProjections();
    expect(projectionWith('1')).toBe(projectionWith('1'));
    expect(projectionWith('1')).not.toBe(projectionWith('2'));
  });
});
