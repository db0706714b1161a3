import { expect } from 'vitest';
import { createServer, type Store } from '../../src/index.ts';
import { faulty, type Plan } from './faulty-store.ts';
import { Receiver } from './receiver.ts';
import { agentsOf, Caller, limits } from './scripted-client.ts';

const scopes = ['runs:read', 'runs:write', 'sessions:read', 'sessions:write', 'agents:read', 'metrics:read'];

/** An attempt whose bookkeeping fails is made again when its claim has ended, which takes longer than the script. */
const postpones = ({ faults }: Plan): boolean =>
  [faults.delivery, faults.urlFailures, faults.finishDelivery].some((fault) => fault?.fails === 1);

/**
 * Performs what an owner does beside runs, over a store of which one call fails: webhooks, targets, the tasks of A2A,
 * metrics, and the removal of its data. Every request has to succeed in the end, and no webhook may be lost.
 */
export async function performOwned(store: Store, plan: Plan): Promise<void> {
  const receiver = await Receiver.open();
  const app = await createServer({
    agents: agentsOf(() => true),
    store: faulty(store, plan),
    limits,
    // The script polls.
    requestsPerMinute: 0,
    docs: false,
    playground: false,
    protocols: ['a2a'],
    metrics: true,
    webhooks: { secrets: ['the master secret of the script of owners'] },
    foreign: { allowNetworks: ['127.0.0.1'] },
    auth: { authenticate: () => ({ id: 'alice', scopes }) },
  });
  const caller = new Caller(() => app);
  const get = async (url: string, headers = {}) => {
    const { status, body } = await caller.ask('GET', url, undefined, headers);
    expect([url, status, body]).toEqual([url, 200, expect.any(String)]);
    return body;
  };
  const echo = await caller.run('echo', { webhook: { url: receiver.url, events: ['run.completed'] } });
  expect(echo.status).toBe('completed');
  let deliveries: { delivery_id: string; state: string }[] = [];
  do ({ deliveries } = JSON.parse(await get(`/runs/${echo.run_id}/deliveries`)));
  while (deliveries[0]?.state !== 'delivered' && !postpones(plan));
  expect(deliveries).toHaveLength(1);
  if (!postpones(plan)) {
    const replayed = await caller.ask('POST', `/deliveries/${deliveries[0]?.delivery_id}/replay`);
    // A repeated request may find that the first one, of which the answer was lost, has taken effect.
    expect([202, 409]).toContain(replayed.status);
  }
  expect(JSON.parse(await get('/deliveries')).deliveries).toHaveLength(1);

  const never = await caller.run('never', { mode: 'async' });
  const a2a = { 'a2a-version': '1.0' };
  const configs = `/a2a/never/tasks/${never.run_id}/pushNotificationConfigs`;
  const config = { id: 'mine', url: receiver.url };
  expect((await caller.ask('POST', configs, config, a2a)).status).toBe(200);
  expect(JSON.parse(await get(configs, a2a)).configs).toMatchObject([config]);
  expect(JSON.parse(await get('/a2a/echo/tasks', a2a))).toMatchObject({ totalSize: 1, tasks: [{ id: echo.run_id }] });
  expect(await get('/metrics')).toContain('rivulet_');

  const erased = await caller.ask('DELETE', '/principals/me/data');
  expect(erased.status).toBe(200);
  expect(JSON.parse(await get('/runs')).runs).toEqual([]);
  await app.close();
  await receiver.close();
}
