import { concat, concatMap, from, map, of, timer } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import { ReconnectingAgent } from '../../../examples/ag-ui/reconnecting-agent.ts';
import { sharedState, trajectory } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';
import { cutAfter } from '../../support/cut-response.ts';
import { serve } from '../../support/serve.ts';
import { redisPlace } from '../../support/servers.ts';

const place = await redisPlace();

const slow = agent('slow', (_, context) =>
  concat(
    from(['One ', '“two” ', 'three.']).pipe(concatMap((token) => timer(5).pipe(map(() => token)))),
    of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
    of(sharedState({ found: 2 })),
    of('Shall I?'),
    context.await('Well?').pipe(map(({ message }) => `You said ${message.parts[0]?.content}.`)),
    from([' And', ' so', ' on.']).pipe(concatMap((token) => timer(5).pipe(map(() => token)))),
  ),
);

describe.skipIf(place === undefined)('three nodes with Redis', () => {
  afterAll(() => place?.remove());

  it('give a client whose stream breaks after any byte exactly the rest, each time from another node', async () => {
    const store = place?.url ?? '';
    const all = [await serve([slow], { store }), await serve([slow], { store }), await serve([slow], { store })];
    let sent = 0;
    let cuts = 0;
    /** What the agent has after both of its runs, if each of the first streams breaks after so many bytes. */
    const talk = async (bytes: readonly number[]): Promise<string> => {
      const left = [...bytes];
      const send = async (url: string, init: RequestInit): Promise<Response> => {
        sent += 1;
        const response = await fetch(`${all[sent % 3]?.url}${new URL(url).pathname}`, init);
        const next = left.shift();
        if (next !== undefined) cuts += 1;
        return next === undefined ? response : cutAfter(response, next);
      };
      const messages = [{ id: 'u1', role: 'user', content: 'hi' } as const];
      const own = new ReconnectingAgent(
        { url: 'http://any.example/ag-ui/slow', fetch: send, initialMessages: messages },
        1,
      );
      await own.runAgent();
      const interruptId = own.pendingInterrupts[0]?.id ?? '';
      await own.runAgent({ resume: [{ interruptId, status: 'resolved', payload: 'yes' }] });
      const ids = own.messages.map(({ id }) => id);
      return JSON.stringify([own.messages, own.state]).replace(/[\da-f-]{36}\.\d+/g, (id) => `${ids.indexOf(id)}`);
    };
    const whole = await talk([]);
    expect(whole).toContain('You said yes. And so on.');
    for (let k = 1; k < 2_000; k += 23) expect(await talk([k, k % 400, 700, k % 90, 300])).toBe(whole);
    expect(cuts).toBeGreaterThan(300);
  });
});
