import { concat, concatMap, from, map, of, timer } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import { followTask } from '../../../examples/a2a/follow-task.ts';
import { file, trajectory } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';
import { cutAfter } from '../../support/cut-response.ts';
import { serve } from '../../support/serve.ts';
import { redisPlace } from '../../support/servers.ts';
import { bindings, clientOf, message } from './clients.ts';

const place = await redisPlace();

const slow = agent('slow', (_, context) =>
  concat(
    from(['One ', '“two” ', 'three.']).pipe(concatMap((token) => timer(5).pipe(map(() => token)))),
    of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
    of(file('a.txt', 'hello')),
    of('Shall I?'),
    context.await('Well?').pipe(map(({ message: said }) => `You said ${said.parts[0]?.content}.`)),
    from([' And', ' so', ' on.']).pipe(concatMap((token) => timer(5).pipe(map(() => token)))),
  ),
);

describe.skipIf(place === undefined)('three nodes with Redis', () => {
  afterAll(() => place?.remove());

  it.each(bindings)(
    'give a client with %s exactly the rest after any byte, each time from another node',
    async (binding) => {
      const store = place?.url ?? '';
      const all = [await serve([slow], { store }), await serve([slow], { store }), await serve([slow], { store })];
      let sent = 0;
      let cuts = 0;
      /** All updates of a task with a question, if each of its first streams breaks after so many bytes. */
      const talk = async (bytes: readonly number[]): Promise<string> => {
        const left = [...bytes];
        const send: typeof fetch = async (url, init) => {
          sent += 1;
          const response = await fetch(`${all[sent % 3]?.url}${new URL(String(url)).pathname}`, init);
          if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
          const next = left.shift();
          if (next !== undefined) cuts += 1;
          return next === undefined ? response : cutAfter(response, next);
        };
        const client = await clientOf(`${all[0]?.url}/a2a/slow/`, binding, send);
        const updates: string[] = [];
        let taskId = '';
        for (const text of ['hi', 'yes']) {
          for await (const update of followTask(client, message(text, { taskId, contextId: 'c' }), 1)) {
            if (update.payload?.$case === 'task') taskId = update.payload.value.id;
            updates.push(JSON.stringify(update));
          }
        }
        return updates
          .join('\n')
          .replace(/[\da-f-]{36}/g, '…')
          .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then');
      };
      const whole = await talk([]);
      expect(whole).toContain('You said yes.');
      for (let k = 1; k < 2_500; k += 160) expect(await talk([k, k % 900, 1_700, k % 90, 700])).toBe(whole);
      expect(cuts).toBeGreaterThan(60);
    },
  );
});
