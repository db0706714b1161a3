import { describe, expect, it, onTestFinished } from 'vitest';
import { operator } from '../../../src/core/principal.ts';
import type { Access } from '../../../src/engine/access.ts';
import {
  createPushConfig,
  deletePushConfig,
  type FindTask,
  getPushConfig,
  listPushConfigs,
  targetOf,
} from '../../../src/protocols/a2a/push-configs.ts';
import { pushForm } from '../../../src/protocols/a2a/push-form.ts';
import { LocalRuntime } from '../../../src/server/runtime.ts';
import { fresh } from '../../stores/writes.ts';
import { never } from '../../support/agents.ts';

const input = [{ role: 'user', parts: [{ content: 'hi' }] }];
const find: FindTask = async (taskId) => taskId;

async function begin(): Promise<{ own: Access; taskId: string }> {
  const runtime = await LocalRuntime.open({
    agents: [never],
    webhooks: { secrets: ['the master secret of this test of configs'] },
    limits: { shutdownGrace: 0 },
  });
  await runtime.startEngine();
  onTestFinished(() => runtime.close());
  const own = runtime.engine.as(operator);
  const { run_id } = await own.create({ agent_name: 'never', input });
  return { own, taskId: run_id };
}

describe('the push notification configs of a task', () => {
  it('are created, read, listed, replaced and deleted', async () => {
    const { own, taskId } = await begin();
    const authentication = { scheme: 'Bearer', credentials: 'c' };
    const asked = { taskId, id: 'mine', url: 'https://example.com/a', token: 't', authentication, tenant: '' };
    const made = await createPushConfig(own, find, asked);
    expect(made).toEqual({ taskId, id: 'mine', url: 'https://example.com/a', token: 't', authentication });
    expect(await getPushConfig(own, find, { taskId, id: 'mine' })).toEqual(made);
    const other = await createPushConfig(own, find, { taskId, id: '', url: 'https://example.com/b', token: '' });
    expect(other).toEqual({ taskId, id: expect.any(String), url: 'https://example.com/b' });
    expect(await listPushConfigs(own, find, { taskId })).toEqual({ configs: [made, other], nextPageToken: '' });
    const replaced = await createPushConfig(own, find, { taskId, id: 'mine', url: 'https://example.com/c' });
    expect(await getPushConfig(own, find, { taskId, id: 'mine' })).toEqual(replaced);
    for (let n = 0; n < 2; n += 1) expect(await deletePushConfig(own, find, { taskId, id: 'mine' })).toEqual({});
    await expect(getPushConfig(own, find, { taskId, id: 'mine' })).rejects.toThrow(
      'There is no push notification config',
    );
    expect(await listPushConfigs(own, find, { taskId })).toEqual({ configs: [other], nextPageToken: '' });
  });

  it('have the fields of the protocol alone, and ids of any language', async () => {
    const { own, taskId } = await begin();
    const authentication = { scheme: 'Bearer', credentials: '', schemes: ['Bearer'] };
    const asked = { taskId, id: 'a/b ü 🎉', url: 'https://example.com/', authentication, pushed: true };
    expect(await createPushConfig(own, find, asked)).toEqual({
      taskId,
      id: 'a/b ü 🎉',
      url: 'https://example.com/',
      authentication: { scheme: 'Bearer' },
    });
  });

  it('are listed in pages', async () => {
    const { own, taskId } = await begin();
    for (const id of ['a', 'b', 'c']) await createPushConfig(own, find, { taskId, id, url: 'https://example.com/' });
    const first = await listPushConfigs(own, find, { taskId, pageSize: 2 });
    expect(first).toMatchObject({ configs: [{ id: 'a' }, { id: 'b' }], nextPageToken: 'b' });
    const rest = await listPushConfigs(own, find, { taskId, pageSize: 2, pageToken: 'b' });
    expect(rest).toMatchObject({ configs: [{ id: 'c' }], nextPageToken: '' });
    const unknown = listPushConfigs(own, find, { taskId, pageToken: 'no' });
    await expect(unknown).rejects.toThrow('pageToken: expected the id of a config of this task');
  });

  it('have their secrets for their owner with the scope runs:write alone', async () => {
    const { own: all } = await begin();
    const as = (id: string, ...scopes: string[]): Access => all.as({ id, kind: 'key', scopes });
    const writer = as('ada', 'runs:read', 'runs:write');
    const { run_id: taskId } = await writer.create({ agent_name: 'never', input });
    const authentication = { scheme: 'Bearer', credentials: 'c' };
    const made = await createPushConfig(writer, find, {
      taskId,
      id: 'mine',
      url: 'https://example.com/',
      token: 't',
      authentication,
    });
    const masked = { taskId, id: 'mine', url: 'https://example.com/', authentication: { scheme: 'Bearer' } };
    for (const [own, shown] of [
      [writer, made],
      [as('ada', 'runs:read'), masked],
      [as('root', 'admin'), masked],
      [as('ada', 'admin'), made],
    ] as const) {
      expect(await getPushConfig(own, find, { taskId, id: 'mine' })).toEqual(shown);
      expect(await listPushConfigs(own, find, { taskId })).toEqual({ configs: [shown], nextPageToken: '' });
    }
  });

  it('are refused where they could not be sent', async () => {
    const { own, taskId } = await begin();
    const url = 'https://example.com/';
    for (const [more, problem] of [
      [{ url: 'http://example.com/' }, 'url: expected https'],
      [{ url: 'https://a:b@example.com/' }, 'url: expected a URL without a user'],
      [{ url: 'nowhere' }, 'url: expected an absolute'],
      [{ token: 'a\r\nx-injected: b' }, 'token: expected printable ASCII'],
      [{ authentication: { scheme: 'Bearer', credentials: 'ü' } }, 'credentials: expected printable ASCII'],
      [{ authentication: { scheme: 'Bear er' } }, 'scheme: expected an HTTP authentication scheme'],
      [{ taskId: undefined }, 'taskId'],
      [{ id: 'a\0' }, 'id: expected a text without control characters and unpaired surrogates'],
      [{ id: '\ud800' }, 'id: expected a text without control characters and unpaired surrogates'],
      [{ id: 'a'.repeat(5_000) }, 'id: expected string length less or equal to 255'],
      [{ token: 'a'.repeat(5_000) }, 'token: expected string length less or equal to 2048'],
    ] as const) {
      await expect(createPushConfig(own, find, { taskId, url, ...more }), problem).rejects.toThrow(problem);
    }
    expect(await listPushConfigs(own, find, { taskId })).toEqual({ configs: [], nextPageToken: '' });
  });
});

describe('a push notification', () => {
  const row = fresh({ run_id: 'r', session_id: 'key:ada s' });
  const now = '2026-01-01T00:00:00.000Z';
  const run = { run_id: 'r', agent_name: 'a', status: 'completed', output: [], created_at: now, finished_at: now };
  const line = JSON.stringify({ type: 'run.completed', run });
  const change = { status: 'completed', line, row, now };

  it('is a frame of the task’s stream, with the task’s own contextId', () => {
    const target = targetOf({ url: 'https://example.com/' }, 'my chat');
    const status = { state: 'TASK_STATE_COMPLETED', timestamp: change.now };
    expect(JSON.parse(pushForm.bodyOf(change, target))).toEqual({
      statusUpdate: { taskId: 'r', contextId: 'my chat', status },
    });
    expect(JSON.parse(pushForm.bodyOf(change, targetOf({ url: 'https://example.com/' }, undefined)))).toMatchObject({
      statusUpdate: { contextId: 's' },
    });
  });

  it('has the secrets of its config in its headers', () => {
    const headersOf = (more: object) =>
      pushForm.headersOf(targetOf({ url: 'https://example.com/', ...more }, undefined));
    expect(headersOf({})).toEqual({});
    expect(headersOf({ token: 't', authentication: { scheme: 'Basic', credentials: 'YTpi' } })).toEqual({
      'x-a2a-notification-token': 't',
      authorization: 'Basic YTpi',
    });
    expect(headersOf({ authentication: { scheme: 'Negotiate', credentials: '' } })).toEqual({
      authorization: 'Negotiate',
    });
    expect(headersOf({ authentication: { scheme: '', credentials: '' } })).toEqual({});
  });
});
