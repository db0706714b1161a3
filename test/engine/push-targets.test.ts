import { describe, expect, it, onTestFinished } from 'vitest';
import { operator, type Principal } from '../../src/core/principal.ts';
import type { PushTarget } from '../../src/core/push-targets.ts';
import type { Access } from '../../src/engine/access.ts';
import type { Agent } from '../../src/index.ts';
import { LocalRuntime } from '../../src/server/runtime.ts';
import { agent, askOnce, echo, Tap } from '../support/agents.ts';
import { nodes } from '../support/nodes.ts';
import { type Receiver, receiver } from '../support/receiver.ts';

const secrets = ['the master secret of this test of targets'];

/** Nodes of one store, each as its callers use it. */
function cluster(agents: Agent[]) {
  const shared = nodes(agents);
  const node = async (name: string, limits = {}): Promise<LocalRuntime> => {
    const runtime = await LocalRuntime.open({
      agents,
      store: shared.store,
      dispatcher: shared.queue.dispatcher(name),
      webhooks: { secrets },
      foreign: { allowNetworks: ['127.0.0.1'] },
      limits: { webhookRetry: 1, shutdownGrace: 0, ...limits },
    });
    await runtime.startEngine();
    onTestFinished(() => runtime.close());
    return runtime;
  };
  return { ...shared, node };
}

const operatorOf = ({ engine }: LocalRuntime): Access => engine.as(operator);

const caller = (id: string): Principal => ({ kind: 'custom', id, scopes: ['runs:read', 'runs:write'] });

const begin = async (own: Access, agent_name: string, targets: readonly PushTarget[] = []): Promise<string> =>
  (await own.create({ agent_name, input: [{ role: 'user', parts: [{ content: 'hi' }] }] }, { targets })).run_id;

/** The states that a receiver was told, in order and each once, however often it came. */
function statesOf({ received }: Receiver): string[] {
  const ids = new Set<string>();
  return received
    .filter(({ id }) => !ids.has(id) && ids.add(id))
    .map(({ text }) => JSON.parse(text).statusUpdate.status.state.replace('TASK_STATE_', ''));
}

const reply = { message: { role: 'user', parts: [{ content: 'yes' }] } };

describe('the targets of a run', () => {
  it('get each change of status in order, with their own headers, from the creation on', async () => {
    const { node } = cluster([askOnce]);
    const own = operatorOf(await node('a'));
    const [to, other] = [await receiver(), await receiver()];
    const run_id = await begin(own, 'ask', [
      { id: 'one', form: 'a2a', url: to.url, token: 't 1', authentication: { scheme: 'Bearer', credentials: 'c.d' } },
      { id: 'two', form: 'a2a', url: other.url, conversation: 'my chat' },
    ]);
    await to.has(3);
    await own.resume(run_id, reply);
    const received = await to.has(5);
    await other.has(5);
    for (const each of [to, other])
      expect(statesOf(each)).toEqual(['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'WORKING', 'COMPLETED']);
    expect(received[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      authorization: 'Bearer c.d',
      'x-a2a-notification-token': 't 1',
    });
    expect(other.received[0]?.headers.authorization).toBeUndefined();
    expect(JSON.parse(other.received[0]?.text ?? '').statusUpdate).toMatchObject({
      taskId: run_id,
      contextId: 'my chat',
    });
  });

  it('are added on any node while another one executes the run, and get what comes after', async () => {
    const tap = new Tap();
    const { node, queue, store } = cluster([tap.agent]);
    const [a, b] = [operatorOf(await node('a')), operatorOf(await node('b'))];
    queue.next = 'b';
    const run_id = await begin(a, 'tap');
    await tap.started();
    tap.push('one ');
    await expect.poll(async () => (await store.run(run_id))?.status).toBe('in-progress');
    const [to, other] = [await receiver(), await receiver()];
    await a.putTarget(run_id, { id: 'one', form: 'a2a', url: to.url });
    await b.putTarget(run_id, { id: 'two', form: 'a2a', url: other.url });
    expect(queue.holder(run_id)).toBe('b');
    tap.push('two ');
    tap.complete();
    await Promise.all([to.has(1), other.has(1)]);
    expect([statesOf(to), statesOf(other)]).toEqual([['COMPLETED'], ['COMPLETED']]);
    expect(JSON.parse(await a.details(run_id))).toMatchObject({ status: 'completed' });
    expect(tap.subscriptions).toBe(1);
  });

  it('stay while nodes die: the one that ends the run tells them', async () => {
    const tap = new Tap();
    const { node, queue, store } = cluster([tap.agent]);
    const [a] = [operatorOf(await node('a')), await node('b')];
    queue.next = 'b';
    const run_id = await begin(a, 'tap');
    await expect.poll(async () => (await store.run(run_id))?.status).toBe('in-progress');
    const to = await receiver();
    await a.putTarget(run_id, { id: 'one', form: 'a2a', url: to.url });
    queue.next = 'a';
    queue.expireLeases('b');
    await to.has(1);
    expect(statesOf(to)).toEqual(['FAILED']);
  });

  it('get all changes in order from a receiver’s failures on, each at least once', async () => {
    const { node } = cluster([askOnce]);
    const own = operatorOf(await node('a'));
    const to = await receiver();
    let refusals = 2;
    to.answer = () => ({ status: refusals-- > 0 ? 503 : 200 });
    const run_id = await begin(own, 'ask', [{ id: 'one', form: 'a2a', url: to.url }]);
    await to.has(5);
    await own.resume(run_id, reply);
    await to.has(7);
    expect(statesOf(to)).toEqual(['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'WORKING', 'COMPLETED']);
  });

  it('get nothing more once they are removed, not even what waits for another attempt', async () => {
    const { node, store } = cluster([askOnce]);
    const own = operatorOf(await node('a', { webhookRetry: 500 }));
    const [gone, stays] = [await receiver(), await receiver()];
    // The first attempt lasts until the target is removed, however long that takes.
    let fail = (): void => {};
    const removed = new Promise<{ status: number }>((resolve) => (fail = () => resolve({ status: 500 })));
    gone.answer = () => removed;
    const run_id = await begin(own, 'ask', [
      { id: 'gone', form: 'a2a', url: gone.url },
      { id: 'stays', form: 'a2a', url: stays.url },
    ]);
    await stays.has(3);
    await gone.has(1);
    await own.removeTarget(run_id, 'gone');
    fail();
    expect((await own.targets(run_id, 'a2a')).map(({ id }) => id)).toEqual(['stays']);
    await own.resume(run_id, reply);
    await stays.has(5);
    const states = async () =>
      (await store.outbox.deliveries({ run_id }, undefined, 20)).filter(({ target }) => target === 'gone');
    await expect
      .poll(async () => (await states()).map(({ state, last_error }) => `${state} ${last_error}`))
      .toEqual(Array.from({ length: 3 }, () => 'failed its target was removed'));
    expect(gone.received).toHaveLength(1);
  });

  it('get no secret of the target that replaces them at another URL', async () => {
    const { node, store } = cluster([askOnce]);
    const own = operatorOf(await node('a', { webhookRetry: 500 }));
    const [old, next] = [await receiver(), await receiver()];
    old.answer = () => ({ status: 500 });
    const run_id = await begin(own, 'ask', [{ id: 'one', form: 'a2a', url: old.url, token: 'old' }]);
    await expect.poll(async () => (await store.run(run_id))?.status).toBe('awaiting');
    await old.has(1);
    await own.putTarget(run_id, { id: 'one', form: 'a2a', url: next.url, token: 'new' });
    await expect
      .poll(async () => (await store.outbox.deliveries({ run_id }, undefined, 20)).map(({ state }) => state))
      .toEqual(['failed', 'failed', 'failed']);
    expect(new Set(old.received.map(({ headers }) => headers['x-a2a-notification-token']))).toEqual(new Set(['old']));
    await own.resume(run_id, reply);
    await next.has(2);
    expect(statesOf(next)).toEqual(['WORKING', 'COMPLETED']);
  });

  it('are not more than ten, and not larger than 32 KiB', async () => {
    const tap = new Tap();
    const own = operatorOf(await cluster([tap.agent]).node('a'));
    const run_id = await begin(own, 'tap');
    const target = (n: number, path = ''): PushTarget => ({
      id: `${n}`,
      form: 'a2a',
      url: `https://example.com/${path}`,
    });
    for (let n = 0; n < 10; n += 1) await own.putTarget(run_id, target(n));
    await own.putTarget(run_id, target(9, 'replaced'));
    expect((await own.targets(run_id, 'a2a')).at(-1)).toMatchObject({ id: '9', url: 'https://example.com/replaced' });
    await expect(own.putTarget(run_id, target(10))).rejects.toThrow('expected at most 10 targets');
    await own.removeTarget(run_id, '0');
    await expect(own.putTarget(run_id, target(10, 'x'.repeat(33_000)))).rejects.toThrow('32768 characters');
    await expect(own.putTarget(run_id, { ...target(10), url: 'ftp://example.com' })).rejects.toThrow('url: expected');
    await expect(begin(own, 'tap', [{ ...target(1), url: 'https://a:b@example.com' }])).rejects.toThrow(
      'url: expected',
    );
  });

  it('are changed by many requests at once, and none is lost', async () => {
    const tap = new Tap();
    const { node } = cluster([tap.agent]);
    const all = [operatorOf(await node('a')), operatorOf(await node('b'))];
    const run_id = await begin(all[0] as Access, 'tap');
    const ids = Array.from({ length: 8 }, (_, n) => `${n}`);
    await Promise.all(
      ids.map((id, n) => all[n % 2]?.putTarget(run_id, { id, form: 'a2a', url: `https://example.com/${id}` })),
    );
    expect((await all[1]?.targets(run_id, 'a2a'))?.map(({ id }) => id).sort()).toEqual(ids);
  });

  it('are those of the run’s owner: others neither see nor change them, and admins see no secrets', async () => {
    const tap = new Tap();
    const runtime = await cluster([tap.agent, agent('other', () => 'x'), echo]).node('a');
    const access = (principal: Principal): Access => runtime.engine.as(principal);
    const [owner, stranger] = [access(caller('ada')), access(caller('bob'))];
    const target: PushTarget = { id: 'one', form: 'a2a', url: 'https://example.com/', token: 'secret' };
    const run_id = await begin(owner, 'tap');
    await owner.putTarget(run_id, target);
    for (const attempt of [
      stranger.targets(run_id, 'a2a'),
      stranger.putTarget(run_id, target),
      stranger.removeTarget(run_id, 'one'),
    ]) {
      await expect(attempt).rejects.toThrow('There is no run');
    }
    expect(await owner.targets(run_id, 'a2a')).toEqual([target]);
    expect(await operatorOf(runtime).targets(run_id, 'a2a')).toEqual([
      { id: 'one', form: 'a2a', url: 'https://example.com/' },
    ]);
    expect(await owner.details(run_id)).not.toContain('secret');
    await owner.erase();
    await expect(owner.targets(run_id, 'a2a')).rejects.toThrow('There is no run');
  });
});

describe('runs by the time of their status', () => {
  it('are listed newest first in pages, with their number, and only those of the caller', async () => {
    const { node } = cluster([echo, askOnce]);
    const runtime = await node('a');
    const access = (principal: Principal): Access => runtime.engine.as(principal);
    const [owner, stranger] = [access(caller('ada')), access(caller('bob'))];
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) ids.push(await begin(owner, 'ask'));
    const to = await receiver();
    await begin(stranger, 'ask', [{ id: 'x', form: 'a2a', url: to.url }]);
    await to.has(3);
    const listed = async (own: Access, more = {}, after?: { status_at: string; run_id: string }, limit = 10) => {
      const page = await own.runsByStatusTime({ agent_name: 'ask', ...more }, after, limit);
      return { ...page, runs: page.runs.map((text) => JSON.parse(text)) };
    };
    await expect.poll(async () => (await listed(owner, { statuses: ['awaiting'] })).total).toBe(3);
    await owner.resume(ids[0] ?? '', reply);
    await expect.poll(async () => (await listed(owner)).runs[0]).toMatchObject({ run_id: ids[0], status: 'completed' });
    const all = await listed(owner);
    expect([all.total, all.next]).toEqual([3, undefined]);
    const first = await listed(owner, {}, undefined, 2);
    expect([first.total, first.runs.length, first.next?.run_id]).toEqual([3, 2, first.runs[1].run_id]);
    const second = await listed(owner, {}, first.next, 2);
    expect([second.runs.map(({ run_id }) => run_id), second.next]).toEqual([[all.runs[2].run_id], undefined]);
    expect(all.runs[0].status_at).toBe(all.runs[0].finished_at);
    expect((await listed(owner, { since: all.runs[0].status_at, statuses: ['completed'] })).total).toBe(1);
    expect((await listed(stranger)).total).toBe(1);
    expect((await listed(operatorOf(runtime))).total).toBe(4);
    expect((await listed(owner, { session_id: all.runs[1].session_id })).runs).toEqual([all.runs[1]]);
    expect((await owner.runsByStatusTime({}, undefined, 2)).total).toBe(3);
    await expect(listed(owner, { owner: 'custom:bob' })).rejects.toThrow('admin');
  });
});
