import { map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../../../src/stores/memory/memory-store.ts';
import { agent, askOnce, echo, never, Tap } from '../../support/agents.ts';
import { faulty, newPlan } from '../../support/faulty-store.ts';
import { serve, serveAll } from '../../support/serve.ts';
import { AgentCard, foldFrame, RestError, RpcError, SendAnswer, StreamFrame, TaskList, TaskShape } from './shapes.ts';

const full = agent('full', () => of('hi'), {
  input_content_types: ['text/plain'],
  output_content_types: ['text/plain', 'application/json'],
  metadata: {
    version: '2.1.0',
    tags: ['one'],
    domains: ['two'],
    examples: ['Try this', { title: 'That', prompt: 'Try that' }],
    tool: { name: 'full_tool', title: 'The Full One' },
    author: { name: 'Ada', url: 'https://ada.example' },
    links: [{ type: 'documentation', url: 'https://ada.example/docs' }],
    updated_at: '2026-01-02T03:04:05Z',
  },
});

const served = await serveAll([echo, askOnce, never, full]);

const version = { 'a2a-version': '1.0' };
const cursors = { ...version, 'a2a-extensions': 'urn:rivulet:a2a:cursor:1' };
const post = (path: string, body?: unknown, headers: Record<string, string> = version) =>
  served.post(`/a2a/${path}`, body, headers);
const get = (path: string, headers: Record<string, string> = version) => served.get(`/a2a/${path}`, headers);
const rpc = (name: string, method: string, params?: unknown, id: unknown = 1) =>
  post(`${name}/`, { jsonrpc: '2.0', id, method, params });
const said = (text: string, more: object = {}) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
});

interface Frame {
  readonly id: string | undefined;
  readonly data: unknown;
}
const framesIn = (text: string): Frame[] =>
  text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map((block) => ({
      id: /^id: (.*)$/m.exec(block)?.[1],
      data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? 'null'),
    }));

describe('agent cards', () => {
  it('say what the manifest says, with a strong ETag', async () => {
    const response = await get('full/.well-known/agent-card.json', {});
    const card = AgentCard.of(await response.json());
    expect(card).toMatchObject({
      name: 'The Full One',
      version: '2.1.0',
      provider: { organization: 'Ada', url: 'https://ada.example' },
      documentationUrl: 'https://ada.example/docs',
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain', 'application/json'],
      skills: [{ id: 'full_tool', tags: ['one', 'two'], examples: ['Try this', 'Try that'] }],
    });
    expect(card.supportedInterfaces.map(({ url, protocolBinding }) => [url, protocolBinding])).toEqual([
      [`${served.url}/a2a/full/`, 'JSONRPC'],
      [`${served.url}/a2a/full/`, 'HTTP+JSON'],
    ]);
    expect(response.headers.get('last-modified')).toBe('Fri, 02 Jan 2026 03:04:05 GMT');
    expect(response.headers.get('cache-control')).toContain('max-age');
    const tag = response.headers.get('etag') ?? '';
    expect(tag).toMatch(/^"/);
    const again = await get('full/.well-known/agent-card.json', { 'if-none-match': tag });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });

  it('of the server have each agent as a skill, and the address of its own card', async () => {
    const card = AgentCard.of(await (await served.get('/.well-known/agent-card.json')).json());
    expect(card.skills.map(({ id }) => id)).toEqual(['ask', 'echo', 'full', 'never']);
    const [, { params } = {}] = card.capabilities.extensions ?? [];
    expect(params).toMatchObject({ agents: { echo: `${served.url}/a2a/echo/.well-known/agent-card.json` } });
    expect(card.supportedInterfaces).toHaveLength(1);
    expect((await served.get('/a2a/none/.well-known/agent-card.json')).status).toBe(404);
  });

  it('are answered while the store is away', async () => {
    const store = faulty(new MemoryStore(), newPlan({ figures: { fails: 1, times: Number.POSITIVE_INFINITY } }));
    const own = await serve([echo], { store });
    for (const path of ['/a2a/echo/', '/'])
      AgentCard.of(await (await own.get(`${path}.well-known/agent-card.json`)).json());
  });

  it('name the public URL, and are gone with the protocol', async () => {
    const proxied = await serve([echo], { publicUrl: 'https://agents.example.com/base' });
    const card = AgentCard.of(await (await proxied.get('/a2a/echo/.well-known/agent-card.json')).json());
    expect(card.supportedInterfaces[0]?.url).toBe('https://agents.example.com/base/a2a/echo/');
    const without = await serve([echo], { protocols: ['ai-sdk'] });
    expect((await without.get('/.well-known/agent-card.json')).status).toBe(404);
  });
});

describe('the binding to HTTP and JSON', () => {
  it('answers each operation in the shapes of the protocol', async () => {
    const sent = await post('echo/message:send', said('hi', { contextId: 'no uuid' }));
    expect(sent.headers.get('content-type')).toContain('application/json');
    const { task } = SendAnswer.of(await sent.json());
    expect(task).toMatchObject({ contextId: 'no uuid', status: { state: 'TASK_STATE_COMPLETED' } });
    expect(TaskShape.of(await (await get(`echo/tasks/${task.id}`)).json())).toEqual(task);
    const list = TaskList.of(await (await get('echo/tasks?contextId=no%20uuid&includeArtifacts=true')).json());
    expect(list).toEqual({ tasks: [task], nextPageToken: '', pageSize: 50, totalSize: 1 });
    const { artifacts: _, history: __, ...bare } = task;
    const short = await (await get('echo/tasks?contextId=no%20uuid&historyLength=0')).json();
    expect(TaskList.of(short).tasks).toEqual([bare]);
    expect(await (await get('echo/tasks?contextId=unknown')).json()).toMatchObject({ tasks: [], totalSize: 0 });
  });

  it('takes verbs with an encoded colon, and a tenant before them', async () => {
    for (const path of ['echo/message%3Asend', 'echo/any/message:send', 'echo/any/message%3asend']) {
      const { task } = SendAnswer.of(await (await post(path, said('hi'))).json());
      expect((await get(`echo/any/tasks/${task.id}`)).status).toBe(200);
      RestError.of(await (await post(`echo/tasks/${task.id}%3Acancel`)).json());
      expect(await (await get(`echo/any/tasks?pageSize=1`)).json()).toMatchObject({ pageSize: 1 });
    }
  });

  it.each<[what: string, headers: Record<string, string>, type: string]>([
    [
      'its own media type where the client accepts it',
      { accept: 'application/a2a+json, application/json' },
      'a2a+json',
    ],
    ['its own media type where the client has sent it', { 'content-type': 'application/a2a+json' }, 'a2a+json'],
    [
      'JSON where the client accepts that alone',
      { accept: 'application/json', 'content-type': 'application/a2a+json' },
      'json',
    ],
    ['JSON where the client says nothing', {}, 'json'],
  ])('answers with %s, also with an error', async (_, headers, type) => {
    for (const path of ['echo/message:send', 'none/message:send']) {
      const response = await post(path, said('hi'), { ...version, ...headers });
      expect(response.headers.get('content-type')).toBe(`application/${type}; charset=utf-8`);
    }
  });

  it('subscribes with GET and POST, also without a body of JSON', async () => {
    const { task } = SendAnswer.of(await (await post('ask/message:send', said('hi'))).json());
    const streams = await Promise.all([
      get(`ask/tasks/${task.id}:subscribe`),
      post(`ask/tasks/${task.id}:subscribe`, undefined, { ...version, 'content-type': 'application/json' }),
    ]);
    await post('ask/message:send', said('so', { taskId: task.id }));
    const [one, two] = await Promise.all(streams.map(async (stream) => framesIn(await stream.text())));
    expect(one).toEqual(two);
    expect(one?.[0]?.data).toEqual({ task });
  });
});

describe('the binding to JSON-RPC', () => {
  it('answers each operation in the shapes of the protocol, and keeps the type of the id', async () => {
    for (const id of [7, '7', 'a $& "b"']) {
      const { id: got, result } = await (await rpc('echo', 'SendMessage', said('hi'), id)).json();
      expect(got).toBe(id);
      const { task } = SendAnswer.of(result);
      expect(TaskShape.of((await (await rpc('echo', 'GetTask', { id: task.id })).json()).result)).toEqual(task);
      const frames = framesIn(await (await rpc('echo', 'SendStreamingMessage', said('hi'), id)).text());
      for (const { data } of frames) {
        expect(data).toMatchObject({ jsonrpc: '2.0', id });
        StreamFrame.of(Reflect.get(Object(data), 'result'));
      }
      expect(frames.length).toBeGreaterThan(4);
    }
    TaskList.of((await (await rpc('echo', 'ListTasks')).json()).result);
    const { error } = await (await rpc('echo', 'SendMessage')).json();
    expect(error).toMatchObject({ code: -32602, message: 'message: is required.' });
  });

  it('frames what the other binding does', async () => {
    const body = said('hi');
    const rest = framesIn(await (await post('echo/message:stream', body)).text());
    const wrapped = framesIn(await (await rpc('echo', 'SendStreamingMessage', body, 'x')).text());
    expect(wrapped).toEqual(rest.map(({ id, data }) => ({ id, data: { jsonrpc: '2.0', id: 'x', result: data } })));
  });
});

describe('a stream', () => {
  it('begins with the task and folds to it', async () => {
    const frames = framesIn(await (await post('echo/message:stream', said('hi'))).text());
    let task: ReturnType<typeof foldFrame> | undefined;
    for (const { data } of frames) task = foldFrame(task, data);
    expect(task).toEqual(await (await get(`echo/tasks/${task?.id}`)).json());
  });

  it('is the same for two subscribers, in the middle of a run', async () => {
    const tap = new Tap();
    const own = await serve([tap.agent]);
    const url = '/a2a/tap/message:send';
    const configuration = { returnImmediately: true };
    const { task } = await (await own.post(url, { ...said('hi'), configuration }, version)).json();
    await tap.started();
    tap.push('one ');
    const watched = async () => own.get(`/a2a/tap/tasks/${task.id}:subscribe`, version);
    await expect.poll(async () => (await own.get(`/a2a/tap/tasks/${task.id}`, version)).text()).toContain('one ');
    const streams = [await watched(), await watched()];
    tap.push('two');
    tap.complete();
    const [one = [], two] = await Promise.all(streams.map(async (stream) => framesIn(await stream.text())));
    expect(one).toEqual(two);
    expect(one[0]?.data).toMatchObject({ task: { artifacts: [{ parts: [{ text: 'one ' }] }] } });
    let folded: ReturnType<typeof foldFrame> | undefined;
    for (const { data } of one) folded = foldFrame(folded, data);
    expect(folded).toEqual(await (await own.get(`/a2a/tap/tasks/${task.id}`, version)).json());
  });

  it('of a subscriber stays open while the task awaits, until it is final', async () => {
    const { task } = SendAnswer.of(await (await post('ask/message:send', said('hi'))).json());
    const stream = await get(`ask/tasks/${task.id}:subscribe`);
    await post('ask/message:send', said('so', { taskId: task.id }));
    const last = framesIn(await stream.text()).at(-1)?.data;
    expect(last).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } });
  });

  it('goes on exactly after any frame for a client that names the extension, also of a final task', async () => {
    const response = await post('ask/message:stream', said('hi'), cursors);
    expect(response.headers.get('a2a-extensions')).toBe('urn:rivulet:a2a:cursor:1');
    const id = response.headers.get('run-id');
    await response.text();
    await post('ask/message:send', said('so', { taskId: id }));
    const path = `ask/tasks/${id}:subscribe`;
    const all = framesIn(await (await get(path, { ...cursors, 'last-event-id': '0' })).text());
    for (const [index, frame] of all.entries()) {
      const rest = await get(path, { ...cursors, 'last-event-id': frame.id ?? '' });
      const isLast = index + 1 === all.length;
      expect(framesIn(await rest.text())).toEqual(isLast ? all.slice(-1) : all.slice(index + 1));
      const [update] = Object.values(Object(frame.data));
      expect(update).toMatchObject({ metadata: { 'urn:rivulet:a2a:cursor:1': frame.id } });
    }
    // Without the extension, a final task has no stream.
    RestError.of(await (await get(path, { ...version, 'last-event-id': '2' })).json());
    const beyond = await get(path, { ...cursors, 'last-event-id': '99' });
    const { error } = RestError.of(await beyond.json());
    expect([beyond.status, error.details[0]?.reason]).toEqual([400, 'INVALID_PARAMS']);
    expect(error.message).toContain('Last-Event-ID is not a cursor of this run: 99.');
  });

  it('breaks off where the server stops, because a client takes a clean end for the end of the task', async () => {
    const tap = new Tap();
    const own = await serve([{ ...tap.agent, options: { durable: true } }]);
    const stream = await own.post('/a2a/tap/message:stream', said('hi'), version);
    await tap.started();
    await Promise.all([expect(stream.text()).rejects.toThrow(), own.app.close()]);
  });
});

describe('a message that comes again', () => {
  it('has made one task, and resumed it once', async () => {
    const body = said('hi');
    const [one, two] = await Promise.all([post('ask/message:send', body), post('ask/message:send', body)]);
    const { task } = SendAnswer.of(await one.json());
    expect(SendAnswer.of(await two.json()).task).toEqual(task);
    const reply = said('so', { taskId: task.id });
    const first = await (await post('ask/message:send', reply)).json();
    expect(await (await post('ask/message:send', reply)).json()).toEqual(first);
    const streamed = framesIn(await (await post('ask/message:stream', reply)).text());
    expect(streamed[0]?.data).toMatchObject({ task: { status: { state: 'TASK_STATE_INPUT_REQUIRED' } } });
  });

  it('with another text is refused', async () => {
    const body = said('hi');
    await post('echo/message:send', body);
    const changed = await post('echo/message:send', { message: { ...body.message, parts: [{ text: 'ho' }] } });
    expect(RestError.of(await changed.json()).error.message).toContain('message.messageId: came with another');
  });
});

describe('an error', () => {
  const reasons: [name: string, request: () => Promise<Response>, status: number, code: number, reason: string][] = [
    ['of an unknown task', () => get(`echo/tasks/${crypto.randomUUID()}`), 404, -32001, 'TASK_NOT_FOUND'],
    ['of an id that is none', () => get('echo/tasks/x'), 404, -32001, 'TASK_NOT_FOUND'],
    ['of push', () => get('echo/tasks/x/pushNotificationConfigs'), 400, -32003, 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
    ['of a missing card', () => get('echo/extendedAgentCard'), 400, -32004, 'UNSUPPORTED_OPERATION'],
    ['of no version', () => post('echo/message:send', said('hi'), {}), 400, -32009, 'VERSION_NOT_SUPPORTED'],
    ['of an old version', () => get('echo/tasks?A2A-Version=0.3', {}), 400, -32009, 'VERSION_NOT_SUPPORTED'],
    ['of a message', () => post('echo/message:send', { message: {} }), 400, -32602, 'INVALID_PARAMS'],
    ['of a part', () => post('echo/message:send', said('hi', { parts: [{}] })), 400, -32602, 'INVALID_PARAMS'],
    ['of a query', () => get('echo/tasks?pageSize=0'), 400, -32602, 'INVALID_PARAMS'],
    ['of a page', () => get('echo/tasks?pageToken=x'), 400, -32602, 'INVALID_PARAMS'],
    [
      'of a content type',
      () => post('full/message:send', said('', { parts: [{ data: 1 }] })),
      400,
      -32005,
      'CONTENT_TYPE_NOT_SUPPORTED',
    ],
    ['of a path', () => post('echo/message:shout', said('hi')), 404, 0, 'ROUTE_UNKNOWN'],
    ['of an agent', () => post('none/message:send', said('hi')), 404, 0, 'AGENT_UNKNOWN'],
  ];

  it.each(reasons)('%s has the status and the reason of the protocol', async (_, request, status, __, reason) => {
    const response = await request();
    const { error } = RestError.of(await response.json());
    expect([response.status, error.code, error.details[0]?.reason]).toEqual([status, status, reason]);
  });

  it('names the place in the message of the client, also in a reply', async () => {
    const form = agent('form', (_, { await: ask }) =>
      ask('A number?', { schema: { type: 'number' } }).pipe(map(() => 'ok')),
    );
    const own = await serve([form, full]);
    const problemOf = async (name: string, body: object) =>
      RestError.of(await (await own.post(`/a2a/${name}/message:send`, body, version)).json()).error.message;
    const asked = await own.post('/a2a/form/message:send', said('hi'), version);
    const { task } = SendAnswer.of(await asked.json());
    expect(await problemOf('form', said('none', { taskId: task.id }))).toBe('message.parts: must be number.');
    expect(await problemOf('full', said('', { parts: [{ data: 1 }] }))).toMatch(/^message\.parts\[0\]: agent full/);
  });

  it('of a version is not that of an empty header, where the query has one', async () => {
    expect((await get('echo/tasks?A2A-Version=1.0', { 'a2a-version': '' })).status).toBe(200);
  });

  it('of JSON-RPC has its code, and comes with 200', async () => {
    const errors: [body: unknown, code: number, headers?: Record<string, string>][] = [
      [{ jsonrpc: '2.0', id: 1, method: 'Shout' }, -32601],
      [{ id: 1, method: 'GetTask' }, -32600],
      [[], -32600],
      [{ jsonrpc: '2.0', id: 1, method: 'GetTask', params: {} }, -32602],
      [{ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'x' } }, -32001],
      [{ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'x' } }, -32009, {}],
      [{ jsonrpc: '2.0', id: 1, method: 'CreateTaskPushNotificationConfig', params: {} }, -32003],
      [{ jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard' }, -32004],
    ];
    for (const [body, code, headers] of errors) {
      const response = await post('echo/', body, headers);
      expect([response.status, RpcError.of(await response.json()).error.code]).toEqual([200, code]);
    }
    const raw = (body: string, type = 'application/json') =>
      fetch(`${served.url}/a2a/echo/`, { method: 'POST', body, headers: { ...version, 'content-type': type } });
    expect(RpcError.of(await (await raw('{')).json())).toMatchObject({ id: null, error: { code: -32700 } });
    expect(RpcError.of(await (await raw('{}', 'text/plain')).json()).error.code).toBe(-32005);
  });
});

describe('with authentication', () => {
  const principals: Record<string, { id: string; scopes: string[] }> = {
    all: { id: 'all', scopes: ['agents:read', 'runs:read', 'runs:write', 'special'] },
    reader: { id: 'reader', scopes: ['runs:read'] },
  };
  const special = { ...agent('special', () => of('hi')), options: { scopes: ['special'] } };
  const secured = (more: object = {}) =>
    serve([echo, special, never], {
      ...more,
      auth: {
        keys: [],
        authenticate: ({ headers }) => principals[/^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1] ?? ''],
      },
    });
  const as = (name: string) => ({ ...version, authorization: `Bearer ${name}` });

  it('cards are public, but for agents that ask for scopes; the extended card shows those to its caller', async () => {
    const own = await secured();
    const card = AgentCard.of(await (await own.get('/.well-known/agent-card.json')).json());
    expect(card.skills.map(({ id }) => id)).toEqual(['echo', 'never']);
    expect(card.capabilities.extendedAgentCard).toBe(true);
    expect(Object.keys(card.securitySchemes ?? {})).toEqual(['bearer', 'apiKey']);
    expect((await own.get('/a2a/special/.well-known/agent-card.json')).status).toBe(404);
    const extended = await own.get('/a2a/special/extendedAgentCard', as('all'));
    expect(AgentCard.of(await extended.json()).name).toBe('special');
    const body = { jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard' };
    const whole = AgentCard.of((await (await own.post('/a2a/', body, as('all'))).json()).result);
    expect(whole.skills.map(({ id }) => id)).toEqual(['echo', 'never', 'special']);
    expect((await own.get('/a2a/echo/extendedAgentCard', version)).status).toBe(401);
  });

  it('each operation needs its scope, and a caller sees its own tasks', async () => {
    const own = await secured();
    const refused = await own.post('/a2a/echo/message:send', said('hi'), as('reader'));
    expect([refused.status, RestError.of(await refused.json()).error.status]).toEqual([403, 'PERMISSION_DENIED']);
    const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: said('hi') };
    const rpcRefused = await own.post('/a2a/echo/', body, as('reader'));
    expect([rpcRefused.status, RpcError.of(await rpcRefused.json()).id]).toEqual([403, 1]);
    const { task } = (await (await own.post('/a2a/echo/', body, as('all'))).json()).result;
    expect((await own.get(`/a2a/echo/tasks/${task.id}`, as('reader'))).status).toBe(404);
    expect(await (await own.get('/a2a/echo/tasks', as('reader'))).json()).toMatchObject({ tasks: [] });
    expect((await own.get(`/a2a/special/tasks/${task.id}`, as('all'))).status).toBe(404);
  });
});

describe('a caller with as many runs as it may have', () => {
  it('gets no other task, but reads and cancels those that it has, in both bindings', async () => {
    const headers = { ...version, authorization: 'Bearer any' };
    const own = await serve([never], {
      runsPerOwner: 1,
      auth: { keys: [], authenticate: () => ({ id: 'any', scopes: ['runs:read', 'runs:write'] }) },
    });
    const call = async (method: string, params: object) =>
      (await own.post('/a2a/never/', { jsonrpc: '2.0', id: 1, method, params }, headers)).json();
    const now = { configuration: { returnImmediately: true } };
    const { task } = (await call('SendMessage', { ...said('hi'), ...now })).result;
    expect(RpcError.of(await call('SendMessage', said('hi'))).error.data[0]?.reason).toBe('TOO_MANY_OWN_RUNS');
    expect((await own.post('/a2a/never/message:send', said('hi'), headers)).status).toBe(429);
    expect((await call('GetTask', { id: task.id })).result.id).toBe(task.id);
    expect((await call('CancelTask', { id: task.id })).result.status.state).toBe('TASK_STATE_CANCELED');
  });
});

describe('a list of tasks', () => {
  it('has pages, a total, and those that have changed last first', async () => {
    const own = await serve([echo, askOnce]);
    const ids: string[] = [];
    for (const name of ['ask', 'echo', 'echo', 'echo']) {
      const { task } = await (
        await own.post(`/a2a/${name}/message:send`, said('hi', { contextId: 'c' }), version)
      ).json();
      ids.unshift(task.id);
    }
    const list = async (query: string, name = 'echo') =>
      TaskList.of(await (await own.get(`/a2a/${name}/tasks?${query}`, version)).json());
    const first = await list('pageSize=2');
    expect(first).toMatchObject({ pageSize: 2, totalSize: 3 });
    const second = await list(`pageSize=2&pageToken=${first.nextPageToken}`);
    expect([...first.tasks, ...second.tasks].map(({ id }) => id)).toEqual(ids.slice(0, 3));
    expect(second.nextPageToken).toBe('');
    const after = first.tasks[0]?.status.timestamp ?? '';
    const since = [...first.tasks, ...second.tasks].filter(({ status: { timestamp = '' } }) => timestamp >= after);
    expect((await list(`statusTimestampAfter=${after}`)).tasks).toEqual(since);
    expect((await list('status=TASK_STATE_INPUT_REQUIRED', 'ask')).tasks).toHaveLength(1);
    expect((await list('status=TASK_STATE_REJECTED')).tasks).toEqual([]);
  });
});
