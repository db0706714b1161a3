import { describe, expect, it } from 'vitest';
import { agent } from '../support/agents.ts';
import { ask, type Served, serve } from '../support/serve.ts';

/** Emits one text of so many characters. */
const large = agent('large', (input) => 'x'.repeat(Number(input[0]?.parts[0]?.content)));

const create = async (served: Served, chars: number, more: object = {}): Promise<string> =>
  (await (await served.post('/runs', ask('large', String(chars), more))).json()).run_id;

const reason = async (response: Response): Promise<unknown> => [
  response.status,
  JSON.stringify(await response.json()).match(/"(\w+_too_large|too_many_own_reads|too_busy)"/)?.[1],
];

describe('what one request reads', () => {
  it('is refused beyond the limit, and the events can be read as a stream', async () => {
    const served = await serve([large], { readLimit: 100_000 });
    const run = await served.post('/runs', ask('large', '200000', { mode: 'async' }));
    const { run_id } = await run.json();
    await (await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' })).text();
    expect(await reason(await served.get(`/runs/${run_id}`))).toEqual([413, 'read_too_large']);
    expect((await (await served.get(`/runs/${run_id}/events`)).text()).length).toBeGreaterThan(400_000);
  });

  it('ends a list early, with the cursor of the rest: a chat has all of its turns on several pages', async () => {
    const served = await serve([large], { readLimit: 250_000 });
    const session_id = crypto.randomUUID();
    for (let n = 0; n < 5; n += 1) await create(served, 100_000 + n, { session_id });
    const lengths: number[] = [];
    for (let cursor = ''; ; ) {
      const page = await (await served.get(`/ai/large/${session_id}?limit=100${cursor}`)).json();
      expect(page.messages.length).toBeLessThan(10);
      const texts = page.messages.filter(({ role }: { role: string }) => role === 'assistant');
      lengths.unshift(...texts.map(({ parts }: { parts: { text?: string }[] }) => parts.at(-1)?.text?.length));
      if (page.next_cursor === undefined) break;
      cursor = `&cursor=${page.next_cursor}`;
    }
    expect(lengths).toEqual([100_000, 100_001, 100_002, 100_003, 100_004]);
  });

  it('counts each reference of an input to an item as large as the item', async () => {
    const served = await serve([large], { bodyLimit: 250_000 });
    const made = await (await served.post('/v1/responses', { model: 'large', input: '100000' })).json();
    const { id } = made.output[0];
    const input = (count: number) => [
      ...Array.from({ length: count }, () => ({ type: 'item_reference', id })),
      { role: 'user', content: '1' },
    ];
    expect((await served.post('/v1/responses', { model: 'large', input: input(2) })).status).toBe(200);
    expect(await reason(await served.post('/v1/responses', { model: 'large', input: input(3) }))).toEqual([
      413,
      'references_too_large',
    ]);
  });
});
