import type { Run } from 'rivulet';
import { describe, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { ask, serve, textOf } from '../support/serve.ts';

async function answered(reply: string): Promise<{ asked: Run; done: Run }> {
  const served = await serve([approve]);
  const asked: Run = await (await served.post('/runs', ask('approve', 'sell the boat'))).json();
  const await_resume = { type: 'message', message: { parts: [{ content: reply }] } };
  const done: Run = await (await served.post(`/runs/${asked.run_id}`, { mode: 'sync', await_resume })).json();
  return { asked, done };
}

describe('approve', () => {
  it('says what it is about to do, and waits', async () => {
    const { asked } = await answered('no');
    expect(asked.status).toBe('awaiting');
    expect(textOf(asked)).toBe('I am about to do this: sell the boat\n');
    expect(asked.await_request?.message.parts[0]?.content).toBe('Shall I? Answer yes or no.');
  });

  it.each(['yes', 'Yes, please', ' ok', 'y'])('acts when the answer is "%s"', async (reply) => {
    const { done } = await answered(reply);
    expect(done.status).toBe('completed');
    expect(textOf(done)).toMatch(/Done: sell the boat$/);
  });

  it.each(['no', 'Not yet', 'yesterday', ''])('leaves it when the answer is "%s"', async (reply) => {
    const { done } = await answered(reply);
    expect(done.status).toBe('completed');
    expect(textOf(done)).toMatch(/Then I leave it\.$/);
  });
});
