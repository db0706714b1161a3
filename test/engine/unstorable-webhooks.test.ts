import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { newId } from '../../src/engine/ids.ts';
import { agent } from '../support/agents.ts';
import { PickyStore } from '../support/picky-store.ts';
import { ask, serveApi } from '../support/serve.ts';

const webhooks = { secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] };

describe('a run with a webhook that the store can never take', () => {
  it('ends failed without its webhook, and its agent does not begin again', async () => {
    const store = new PickyStore(({ deliveries = [] }) => deliveries.length > 0);
    const gate = new Subject<string>();
    let starts = 0;
    const one = agent('one', () => {
      starts += 1;
      return gate;
    });
    const served = await serveApi([one], { store, webhooks });
    const session_id = newId();
    const create = async (more: object): Promise<string> => {
      const body = ask('one', 'a', { mode: 'async', session_id, ...more });
      const { run_id } = await (await served.post('/runs', body, { 'if-busy': 'enqueue' })).json();
      return run_id;
    };
    await create({});
    const webhook = { url: 'https://example.com/hook', events: ['run.in-progress', 'run.failed'] };
    const run_id = await create({ webhook });
    expect(run_id).toEqual(expect.any(String));
    gate.complete();
    const ended = async () => {
      const row = await store.run(run_id);
      return [row?.status, row?.targets];
    };
    await expect.poll(ended, { interval: 1 }).toEqual(['failed', null]);
    expect(starts).toBe(2);
  });
});
