import { describe, expect, it } from 'vitest';
import { echo } from '../support/agents.ts';
import { malformedRequests } from '../support/malformed-protocols.ts';
import { excerpt, fault, send } from '../support/raw-http.ts';
import { ask, serve } from '../support/serve.ts';

// test/long/fuzz.ts sends ten thousand to a process.
const seed = 20_261;

describe('twelve hundred malformed requests, half of them to other protocols', () => {
  it(`are answered with errors of their protocol and never with 5xx, and the server goes on (seed ${seed})`, async () => {
    const served = await serve([echo], { webhooks: { secrets: ['the master secret of this test of requests'] } });
    const { run_id, session_id } = await (await served.post('/runs', ask('echo'))).json();
    const next = await malformedRequests(served.url, seed, { agent: 'echo', run_id, session_id });
    const port = Number(new URL(served.url).port);
    const faults: string[] = [];
    const statuses = new Set<number>();
    const sender = async (count: number): Promise<void> => {
      for (; count > 0; count -= 1) {
        const { request, isError } = next();
        for (const answer of await send(port, request)) {
          statuses.add(answer.status);
          const wrong = fault(answer, isError);
          if (wrong !== undefined) faults.push(`${request.name}: ${wrong}, to ${excerpt(request.bytes)}`);
        }
      }
    };
    await Promise.all(Array.from({ length: 10 }, () => sender(120)));
    expect(faults).toEqual([]);
    // The requests reached each kind of refusal.
    for (const status of [200, 400, 404, 405, 415, 422, 431]) expect(statuses).toContain(status);
    expect((await served.get('/ping')).status).toBe(200);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});
