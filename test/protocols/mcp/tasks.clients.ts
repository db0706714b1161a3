import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { createParser } from 'eventsource-parser';
import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agent } from '../../support/agents.ts';
import { serveAll } from '../../support/serve.ts';
import { fails, forms, long } from './agents.ts';

const longNever = agent('long-never', () => NEVER, { metadata: { tool: { long_running: true } } });

const served = await serveAll([long, longNever, fails, forms]);

const version = '2026-07-28';
const clientCapabilities = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };
const _meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientCapabilities': clientCapabilities,
};

/** Sends a request that the official clients have no method for. */
const send = (method: string, params: Record<string, unknown>, signal?: AbortSignal): Promise<Response> =>
  fetch(`${served.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...((params.name ?? params.taskId) !== undefined && { 'mcp-name': String(params.name ?? params.taskId) }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params: { _meta, ...params } }),
    ...(signal && { signal }),
  });
const ask = async (method: string, params: Record<string, unknown>) =>
  (await (await send(method, params)).json()).result;
const begin = async (name: string): Promise<string> => {
  const { resultType, taskId } = await ask('tools/call', { name, arguments: { input: '' } });
  expect(resultType).toBe('task');
  return taskId;
};

describe('a run that takes long', () => {
  it('is a task of the official client, which answers its question and gets its result', async () => {
    const client = new Client(
      { name: 'test', version: '1' },
      { capabilities: clientCapabilities, versionNegotiation: { mode: { pin: version } } },
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(`${served.url}/mcp`)));
    const session = createTaskSessionFromClient(client, {
      endpointId: 'test',
      v2RequestFraming: { protocolVersion: version, clientInfo: { name: 'test', version: '1' }, clientCapabilities },
      rawDispatch: async (request: { method: string; params?: Record<string, unknown> }) => {
        const { result, error } = await (await send(request.method, request.params ?? {})).json();
        return error === undefined ? { kind: 'result', result } : { kind: 'error', error };
      },
      onInputRequest: async () => ({ action: 'accept', content: { answer: true } }),
    } as never);
    const execution = await session.callTool('long', { input: '' });
    const { outcome } = await execution.settle();
    expect(resultFromTaskOutcome(outcome as never)).toMatchObject({ content: [{ type: 'text', text: 'Done: true' }] });
    await session.close();
    await client.close();
  });

  it('is asked for, answered, and says what it is', async () => {
    const taskId = await begin('long');
    await expect.poll(() => ask('tasks/get', { taskId })).toMatchObject({ status: 'input_required' });
    const task = await ask('tasks/get', { taskId });
    expect(task).toMatchObject({
      resultType: 'complete',
      taskId,
      ttlMs: 30 * 24 * 3_600_000,
      inputRequests: { 1: { method: 'elicitation/create', params: { message: 'Go on?' } } },
    });
    const update = (inputResponses: object) => ask('tasks/update', { taskId, inputResponses });
    expect(await update({ unknown: { any: 'thing' } })).toMatchObject({ resultType: 'complete' });
    expect(await update({ 1: { action: 'accept', content: { answer: false } } })).toMatchObject({
      resultType: 'complete',
    });
    await expect
      .poll(() => ask('tasks/get', { taskId }))
      .toMatchObject({
        status: 'completed',
        result: { resultType: 'complete', isError: false, content: [{ text: 'Done: false' }] },
      });
  });

  it('is cancelled; and again, which changes nothing', async () => {
    const taskId = await begin('long-never');
    for (const _ of [1, 2]) expect(await ask('tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' });
    await expect.poll(() => ask('tasks/get', { taskId })).toMatchObject({ status: 'cancelled' });
  });

  it('is a call like any other for a client without the extension', async () => {
    const meta = { ..._meta, 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
    const response = await send('tools/call', { name: 'long', arguments: { input: '' }, _meta: meta });
    expect(await response.text()).toContain('"resultType":"input_required"');
  });
});

describe('a subscription', () => {
  /** The messages of a subscription, until it ends. */
  async function* listening(taskIds: readonly string[]) {
    const response = await send('subscriptions/listen', { notifications: { taskIds } });
    const read: string[] = [];
    const parser = createParser({ onEvent: ({ data }) => read.push(data) });
    const { body } = response;
    if (body === null) throw new Error('no body');
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      parser.feed(text);
      for (const data of read.splice(0)) yield JSON.parse(data);
    }
  }

  it('tells each change of its tasks, and ends when all are final', async () => {
    const [one, two] = [await begin('long'), await begin('long-never')];
    await expect.poll(() => ask('tasks/get', { taskId: one })).toMatchObject({ status: 'input_required' });
    const told: string[] = [];
    const unknown = crypto.randomUUID();
    let last: unknown;
    for await (const message of listening([one, two, unknown, 'x'])) {
      last = message;
      if (message.method === 'notifications/subscriptions/acknowledged') {
        expect(message.params).toMatchObject({ notifications: { taskIds: [one, two] } });
        await ask('tasks/update', {
          taskId: one,
          inputResponses: { 1: { action: 'accept', content: { answer: true } } },
        });
        await ask('tasks/cancel', { taskId: two });
      }
      if (message.method !== 'notifications/tasks') continue;
      expect(message.params._meta).toEqual({ 'io.modelcontextprotocol/subscriptionId': 'one' });
      told.push(`${message.params.taskId === one ? 'one' : 'two'} ${message.params.status}`);
    }
    expect(told).toEqual(
      expect.arrayContaining(['one input_required', 'one completed', 'two working', 'two cancelled']),
    );
    expect(last).toMatchObject({ id: 'one', result: { resultType: 'complete' } });
  });

  it('to nothing ends at once', async () => {
    const messages = [];
    for await (const message of listening([])) messages.push(message);
    expect(messages).toMatchObject([{ params: { notifications: { taskIds: [] } } }, { id: 'one' }]);
  });
});
