import { StreamResponse, TaskState } from '@a2a-js/sdk';
import { concat, map, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AgentError, citation, file, json, progress, trajectory } from '../../../src/index.ts';
import { agent, askOnce, never } from '../../support/agents.ts';
import { serveAll } from '../../support/serve.ts';
import { bindings, clientOf, data, followed, message, text, textIn } from './clients.ts';

const everything = agent('everything', () =>
  concat(
    of(trajectory({ message: 'Where to look?' })),
    of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
    of('Found ', '“it”.'),
    of(citation({ url: 'https://example.com/', title: 'Here', start_index: 0, end_index: 5 })),
    of(progress('nearly', { done: 1, total: 2 })),
    of(file('a.png', new Uint8Array([0, 1, 2]), 'image/png')),
    of(json({ found: 2 })),
    of({ content_type: 'image/png', content_url: 'https://example.com/a.png' }),
  ),
);
const sees = agent('sees', (input, { request }) => of(json({ request, parts: input[0]?.parts })));
const fails = agent('fails', () =>
  concat(
    of('so far'),
    throwError(() => new AgentError('no_money', 'The account is empty.')),
  ),
);
const approves = agent('approves', (_, context) =>
  context
    .await('May I?', { schema: { type: 'boolean' } })
    .pipe(map(({ message: said }) => `You said ${said.parts[0]?.content}.`)),
);
const fills = agent('fills', (_, context) =>
  context
    .await('Your name?', { schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } })
    .pipe(map(({ message: said }) => `Hello ${JSON.parse(said.parts[0]?.content ?? '{}').name}.`)),
);

const served = await serveAll([everything, sees, fails, approves, fills, askOnce, never]);

describe.each(bindings)('the official client with %s', (binding) => {
  const client = (name: string) => clientOf(`${served.url}/a2a/${name}/`, binding);

  it('reads text, steps, citations, files, data and links of a stream', async () => {
    const own = await client('everything');
    const statuses: unknown[] = [];
    const parts: unknown[] = [];
    for await (const { payload } of own.sendMessageStream(message('hi'))) {
      if (payload?.$case === 'statusUpdate') statuses.push(payload.value.status?.message?.parts[0]?.content?.value);
      if (payload?.$case === 'artifactUpdate') parts.push(...(payload.value.artifact?.parts ?? []));
    }
    expect(statuses).toEqual([undefined, 'Where to look?', 'search', 'nearly', undefined]);
    expect(parts).toMatchObject([
      { content: { $case: 'text', value: 'Found ' } },
      { content: { $case: 'text', value: '“it”.' } },
      { content: { $case: 'text' }, metadata: { 'urn:rivulet:a2a:citation:1': { title: 'Here', startIndex: 0 } } },
      { content: { $case: 'raw', value: Buffer.from([0, 1, 2]) }, mediaType: 'image/png', filename: 'a.png' },
      { content: { $case: 'data', value: { found: 2 } }, mediaType: 'application/json' },
      { content: { $case: 'url', value: 'https://example.com/a.png' }, mediaType: 'image/png' },
      { content: { $case: 'text', value: '' } },
    ]);
  });

  it('gets the same task at once, later, and in a list', async () => {
    const own = await client('everything');
    const sent = await own.sendMessage(message('hi', { contextId: `list ${binding}` }));
    if (!('status' in sent)) throw new Error('expected a task');
    expect(sent).toMatchObject({
      contextId: `list ${binding}`,
      status: { state: TaskState.TASK_STATE_COMPLETED },
      artifacts: [{ name: '' }, { name: 'a.png' }],
      history: [{ role: 1, parts: [{ content: { value: 'hi' } }] }],
    });
    expect(await own.getTask({ tenant: '', id: sent.id })).toEqual(sent);
    const query = {
      tenant: '',
      contextId: `list ${binding}`,
      status: 0,
      pageToken: '',
      statusTimestampAfter: undefined,
    };
    expect(await own.listTasks({ ...query, includeArtifacts: true })).toEqual({
      tasks: [sent],
      nextPageToken: '',
      pageSize: 50,
      totalSize: 1,
    });
    expect((await own.listTasks({ ...query, contextId: 'another' })).tasks).toEqual([]);
  });

  it('shows an agent its message, the metadata and the files', async () => {
    const own = await client('sees');
    const parts = [
      { ...text('Look'), metadata: { lang: 'en' } },
      data({ a: [1] }),
      {
        ...text(''),
        content: { $case: 'raw' as const, value: Buffer.from('hi') },
        filename: 'a.png',
        mediaType: 'image/png',
      },
      { ...text(''), content: { $case: 'url' as const, value: 'https://example.com/a.pdf' }, filename: 'a.pdf' },
    ];
    const asked = message(parts, { contextId: 'any thread', metadata: { from: 'me' }, referenceTaskIds: ['t1'] });
    const task = await own.sendMessage({ ...asked, metadata: { trace: 1 } });
    if (!('status' in task)) throw new Error('expected a task');
    const said = task.artifacts[0]?.parts[0]?.content;
    expect(said?.value).toMatchObject({
      request: {
        protocol: 'a2a',
        conversation: 'any thread',
        metadata: {
          messageId: asked.message?.messageId,
          message: { from: 'me' },
          request: { trace: 1 },
          referenceTaskIds: ['t1'],
        },
      },
      parts: [
        { content_type: 'text/plain', content: 'Look', client_metadata: { lang: 'en' } },
        { content_type: 'application/json', content: '{"a":[1]}' },
        { content_type: 'image/png', content_encoding: 'base64', content: 'aGk=', name: 'a.png' },
        { content_type: 'application/pdf', content_url: 'https://example.com/a.pdf', name: 'a.pdf' },
      ],
    });
    expect(task.history[0]).toMatchObject({
      messageId: asked.message?.messageId,
      parts: [{ metadata: { lang: 'en' } }, {}, {}, {}],
    });
  });

  it('gets a failed run as a failed task, with what there is so far', async () => {
    const task = await followed((await client('fails')).sendMessageStream(message('hi')));
    expect(task.status).toMatchObject({
      state: TaskState.TASK_STATE_FAILED,
      message: {
        parts: [{ content: { value: 'The account is empty.' } }],
        metadata: { 'urn:rivulet:a2a:error:1': { data: { code: 'no_money' } } },
      },
    });
    expect(textIn(task)).toBe('so far');
  });

  it('answers a question with a word, and goes on in the same task', async () => {
    const own = await client('approves');
    const asked = await followed(own.sendMessageStream(message('hi', { contextId: 'c' })));
    expect(asked.status).toMatchObject({
      state: TaskState.TASK_STATE_INPUT_REQUIRED,
      message: {
        parts: [{ content: { value: 'May I?' } }],
        metadata: { 'urn:rivulet:a2a:question:1': { schema: { type: 'boolean' } } },
      },
    });
    const stream = own.sendMessageStream(message('Yes.', { taskId: asked.id, contextId: 'c' }));
    const task = await followed(stream);
    expect([task.id, task.contextId, textIn(task)]).toEqual([asked.id, 'c', 'You said true.']);
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const { history } = await own.getTask({ tenant: '', id: task.id });
    expect(history.map(({ role, parts }) => [role, parts[0]?.content?.value])).toEqual([
      [1, 'hi'],
      [2, 'May I?'],
      [1, true],
    ]);
    const { history: last } = await own.getTask({ tenant: '', id: task.id, historyLength: 1 });
    expect(last).toEqual(history.slice(-1));
  });

  it('fills in a form with data, and is told what does not fit', async () => {
    const own = await client('fills');
    const asked = await own.sendMessage(message('hi'));
    if (!('status' in asked)) throw new Error('expected a task');
    await expect(own.sendMessage(message([data({ nme: 'Ada' })], { taskId: asked.id }))).rejects.toThrow('name');
    const task = await own.sendMessage(message([data({ name: 'Ada' })], { taskId: asked.id }));
    expect('status' in task && textIn(task)).toBe('Hello Ada.');
  });

  it('cancels a task, waits for its end, and may do so again', async () => {
    const own = await client('never');
    const asked = message('hi');
    const task = await own.sendMessage({
      ...asked,
      configuration: { returnImmediately: true, acceptedOutputModes: [], taskPushNotificationConfig: undefined },
    });
    if (!('status' in task)) throw new Error('expected a task');
    const request = { tenant: '', id: task.id, metadata: undefined };
    const cancelled = await own.cancelTask(request);
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    expect(await own.cancelTask(request)).toEqual(cancelled);
  });

  it('gets errors of the protocol, of their classes', async () => {
    const own = await client('ask');
    const named = (name: string) => expect.objectContaining({ name });
    const missing = { tenant: '', id: crypto.randomUUID(), metadata: undefined };
    await expect(own.getTask(missing)).rejects.toEqual(named('TaskNotFoundError'));
    await expect(own.cancelTask({ ...missing, id: 'none' })).rejects.toEqual(named('TaskNotFoundError'));
    const asked = await own.sendMessage(message('hi'));
    if (!('status' in asked)) throw new Error('expected a task');
    await expect(own.sendMessage(message('so', { taskId: asked.id, contextId: 'x' }))).rejects.toThrow('contextId');
    await own.sendMessage(message('so', { taskId: asked.id }));
    await expect(own.sendMessage(message('again', { taskId: asked.id }))).rejects.toEqual(
      named('UnsupportedOperationError'),
    );
    await expect(own.cancelTask({ ...missing, id: asked.id })).rejects.toEqual(named('TaskNotCancelableError'));
    await expect(followed(own.resubscribeTask({ tenant: '', id: asked.id }))).rejects.toEqual(
      named('UnsupportedOperationError'),
    );
  });
});

it('a client of the server names the agent as its tenant', async () => {
  const own = await clientOf(served.url, 'JSONRPC');
  expect((await own.getAgentCard()).skills.map(({ id }) => id)).toContain('ask');
  const task = await own.sendMessage({ ...message('hi'), tenant: 'ask' });
  expect('status' in task && task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
  const metadata = { agent: 'sees' };
  expect(await own.sendMessage(message('hi', { metadata }))).toMatchObject({ status: { state: 3 } });
  await expect(own.sendMessage(message('hi'))).rejects.toThrow('tenant: name the agent');
});

it('has no field that the official client of 1.0 does not know, also with cursors, whose numbers are no generation', async () => {
  const headers = {
    'a2a-version': '1.0',
    'a2a-extensions': 'urn:rivulet:a2a:cursor:1',
    'content-type': 'application/json',
  };
  const body = JSON.stringify({ message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hi' }] } });
  const stream = await fetch(`${served.url}/a2a/everything/message:stream`, { method: 'POST', headers, body });
  const frames = (await stream.text()).match(/(?<=^data: ).*$/gm) ?? [];
  expect(frames.length).toBeGreaterThan(5);
  const positions: number[] = [];
  for (const frame of frames) {
    expect(StreamResponse.toJSON(StreamResponse.fromJSON(JSON.parse(frame)))).toMatchObject(JSON.parse(frame));
    positions.push(Math.floor(Number(/"urn:rivulet:a2a:cursor:1":"([\d.]+)"/.exec(frame)?.[1])));
  }
  // A generation grows by 1 with each update.
  const steps = positions.slice(1).map((n, index) => n - (positions[index] ?? 0));
  expect(steps).toContain(2);
  expect((await fetch(`${served.url}/a2a/echo/tasks`, { headers: { ...headers, 'a2a-version': '1.1' } })).status).toBe(
    400,
  );
});
