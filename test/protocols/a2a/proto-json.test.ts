import { describe, expect, it } from 'vitest';
import { askOnce, echo } from '../../support/agents.ts';
import { serveAll } from '../../support/serve.ts';

const served = await serveAll([askOnce, echo], { webhooks: { secrets: ['the master secret of this test of names'] } });

const headers = { 'a2a-version': '1.0' };

async function rpc(agent: string, method: string, params?: object) {
  const response = await served.post(`/a2a/${agent}/`, { jsonrpc: '2.0', id: 1, method, params }, headers);
  return { warning: response.headers.get('rivulet-warning'), ...(await response.json()) };
}

const said = (text: string, more: object = {}) => ({
  message: {
    message_id: crypto.randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text, media_type: 'text/markdown' }],
    ...more,
  },
});

describe('the parameters of an operation', () => {
  it('may have the names of the proto', async () => {
    const { warning, result } = await rpc('ask', 'SendMessage', {
      ...said('hi', { context_id: 'c', metadata: { own_key: 1 } }),
      configuration: { history_length: '1', accepted_output_modes: [] },
    });
    const { id, contextId, history } = result.task;
    expect([warning, contextId, history[0].parts]).toEqual([null, 'c', [{ text: 'hi', mediaType: 'text/markdown' }]]);
    expect((await rpc('ask', 'ListTasks', { page_size: 1, context_id: 'c' })).result).toMatchObject({
      pageSize: 1,
      tasks: [{ id }],
    });
    const answered = await rpc('ask', 'SendMessage', said('yes', { task_id: id, context_id: 'c' }));
    expect(answered.result.task).toMatchObject({ id, status: { state: 'TASK_STATE_COMPLETED' } });
    expect((await rpc('ask', 'GetTask', { id, history_length: 0 })).result.history).toBeUndefined();
    const config = { task_id: id, id: 'mine', url: 'https://example.com/' };
    const created = await rpc('ask', 'CreateTaskPushNotificationConfig', config);
    expect(created).toMatchObject({ warning: null, result: { taskId: id, id: 'mine' } });
  });

  it('may have them by HTTP and JSON, also in the query', async () => {
    const sent = await served.post('/a2a/echo/message:send', said('hi', { context_id: 'd' }), headers);
    expect((await sent.json()).task.contextId).toBe('d');
    const listed = await served.get('/a2a/echo/tasks?page_size=1&context_id=d&A2A-Version=1.0');
    expect([listed.headers.get('rivulet-warning'), (await listed.json()).pageSize]).toEqual([null, 1]);
  });

  it('are named where they are unknown, and the request is served', async () => {
    const list = await rpc('echo', 'ListTasks', { page_sise: 1, pageSize: 2, page_size: 3 });
    expect([list.result.pageSize, list.warning]).toEqual([
      2,
      'unknown fields "page_sise" in params, "page_size" in params',
    ]);
    const sent = await rpc('echo', 'SendMessage', said('hi', { taskid: 'x', parts: [{ text: 'a', kind: 'text' }] }));
    expect(sent.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(sent.warning).toBe('unknown fields "kind" in params.message.parts[0], "taskid" in params.message');
    expect((await rpc('echo', 'ListTasks', { page_size: 'many' })).error.message).toContain('pageSize');
  });
});
