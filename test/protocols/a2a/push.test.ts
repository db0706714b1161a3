import { describe, expect, it, onTestFinished } from 'vitest';
import type { ServerOptions } from '../../../src/index.ts';
import { agent, askOnce, never } from '../../support/agents.ts';
import { receiver } from '../../support/receiver.ts';
import { listen, type Served } from '../../support/serve.ts';
import { bindings, clientOf, message } from './clients.ts';

const secrets = ['the master secret of this test of push notifications'];
const fails = agent('fails', () => Promise.reject(new Error('No way.')));
const large = agent('large', () => ['x'.repeat(100_000)]);

async function open(options: Partial<ServerOptions> = {}): Promise<Served> {
  const served = await listen([askOnce, never, fails, large], {
    webhooks: { secrets },
    foreign: { allowNetworks: ['127.0.0.1'] },
    limits: { webhookRetry: 1 },
    ...options,
  });
  onTestFinished(async () => void (await served.app.close()));
  return served;
}

const config = (url: string, more: object = {}) => ({
  tenant: '',
  id: '',
  taskId: '',
  url,
  token: '',
  authentication: undefined,
  ...more,
});

const statesOf = (received: readonly { readonly body: unknown }[]): unknown[] =>
  received.map(({ body }) => Object(body).statusUpdate?.status?.state);

describe.each(bindings)('push notifications to the official client with %s', (binding) => {
  it('report each change of a task that was sent with a config, with its credentials', async () => {
    const [served, to] = [await open(), await receiver()];
    const own = await clientOf(`${served.url}/a2a/ask/`, binding);
    expect((await own.getAgentCard()).capabilities?.pushNotifications).toBe(true);
    const authentication = { scheme: 'Bearer', credentials: 'c' };
    const asked = {
      ...message('hi', { contextId: 'my chat' }),
      configuration: {
        acceptedOutputModes: [],
        historyLength: undefined,
        returnImmediately: false,
        taskPushNotificationConfig: config(to.url, { id: 'mine', authentication }),
      },
    };
    const task = await own.sendMessage(asked);
    if (!('status' in task)) throw new Error('expected a task');
    // The same message again makes neither a task nor a second config.
    await own.sendMessage(asked);
    await own.sendMessage(message('yes', { taskId: task.id }));
    const received = await to.has(5);
    expect(statesOf(received)).toEqual([
      'TASK_STATE_SUBMITTED',
      'TASK_STATE_WORKING',
      'TASK_STATE_INPUT_REQUIRED',
      'TASK_STATE_WORKING',
      'TASK_STATE_COMPLETED',
    ]);
    for (const { headers, body } of received) {
      expect(headers.authorization).toBe('Bearer c');
      expect(body).toMatchObject({ statusUpdate: { taskId: task.id, contextId: 'my chat' } });
    }
    expect(received[2]?.body).toMatchObject({ statusUpdate: { status: { message: { role: 'ROLE_AGENT' } } } });
    const { configs } = await own.listTaskPushNotificationConfig({
      tenant: '',
      taskId: task.id,
      pageSize: 0,
      pageToken: '',
    });
    expect(configs).toMatchObject([{ id: 'mine', url: to.url }]);
  });

  it('begin with a config that is created later, and end with its deletion', async () => {
    const [served, to] = [await open(), await receiver()];
    const own = await clientOf(`${served.url}/a2a/never/`, binding);
    const stream = own.sendMessageStream(message('hi'));
    const { value: first } = await stream.next();
    const taskId = first?.payload?.$case === 'task' ? first.payload.value.id : '';
    const made = await own.createTaskPushNotificationConfig(config(to.url, { taskId, token: 't' }));
    const named = { tenant: '', taskId, id: made.id };
    expect(await own.getTaskPushNotificationConfig(named)).toEqual(made);
    const gone = await own.createTaskPushNotificationConfig(config(`${to.url}?gone`, { taskId }));
    await own.deleteTaskPushNotificationConfig({ ...named, id: gone.id });
    await expect(own.getTaskPushNotificationConfig({ ...named, id: gone.id })).rejects.toThrow();
    await own.cancelTask({ tenant: '', id: taskId, metadata: undefined });
    const received = await to.has(1);
    expect(statesOf(received)).toEqual(['TASK_STATE_CANCELED']);
    expect(received[0]?.headers['x-a2a-notification-token']).toBe('t');
    await stream.return(undefined);
  });
});

describe('push notifications', () => {
  const sent = async (served: Served, name: string, url: string): Promise<void> => {
    const own = await clientOf(`${served.url}/a2a/${name}/`, 'JSONRPC');
    const configuration = {
      acceptedOutputModes: [],
      historyLength: undefined,
      returnImmediately: true,
      taskPushNotificationConfig: config(url),
    };
    await own.sendMessage({ ...message('hi'), configuration });
  };

  it('have the error of a task that failed', async () => {
    const [served, to] = [await open(), await receiver()];
    await sent(served, 'fails', to.url);
    const received = await to.has(3);
    expect(received[2]?.body).toMatchObject({
      statusUpdate: { status: { state: 'TASK_STATE_FAILED', message: { parts: [{ text: 'No way.' }] } } },
    });
  });

  it('say the state alone where the last event is large', async () => {
    const [served, to] = [await open(), await receiver()];
    await sent(served, 'large', to.url);
    const received = await to.has(3);
    expect(received[2]?.body).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } });
    expect(JSON.stringify(received[2]?.body).length).toBeLessThan(1_000);
  });

  it('are listed in pages by their addresses, and not kept with a reply that is refused', async () => {
    const served = await open();
    const version = { 'a2a-version': '1.0' };
    const said = (more: object) => ({
      message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }], ...more },
    });
    const now = { configuration: { returnImmediately: true } };
    const { task } = await (await served.post('/a2a/never/message:send', { ...said({}), ...now }, version)).json();
    const path = `/a2a/never/tasks/${task.id}/pushNotificationConfigs`;
    const url = 'https://example.com/';
    for (const id of ['a', 'b/c', 'd']) expect((await served.post(path, { id, url }, version)).status).toBe(200);
    const refused = { ...said({ taskId: task.id }), configuration: { taskPushNotificationConfig: { url } } };
    expect((await served.post('/a2a/never/message:send', refused, version)).status).toBe(400);
    const page = async (query: string) => (await served.get(`${path}?${query}`, version)).json();
    expect(await page('pageSize=2')).toMatchObject({ configs: [{ id: 'a' }, { id: 'b/c' }], nextPageToken: 'b/c' });
    expect(await page('pageSize=2&pageToken=b%2Fc')).toMatchObject({ configs: [{ id: 'd' }], nextPageToken: '' });
    expect((await served.get(`${path}/b%2Fc`, version)).status).toBe(200);
  });

  it('are refused where the server sends none, and to a URL without TLS', async () => {
    const off = await open({ webhooks: undefined });
    await expect(sent(off, 'never', 'https://example.com/')).rejects.toThrow();
    const { capabilities } = await (await clientOf(`${off.url}/a2a/never/`, 'JSONRPC')).getAgentCard();
    expect(capabilities?.pushNotifications).toBe(false);
    const guarded = await open({ foreign: {} });
    await expect(sent(guarded, 'never', 'http://example.com/')).rejects.toThrow('expected https');
  });
});
