import { describe, expect, it } from 'vitest';
import { echo, never, tokens } from '../../support/agents.ts';
import { finished, serve, serveAll } from '../../support/serve.ts';
import { type Caller, tenantNode } from '../../support/tenants.ts';
import { forms, long, routed } from './agents.ts';
import { headersOf, metaOf, request, version } from './modern.ts';

const served = await serveAll([echo, forms, never, tokens, long, routed]);

type Headers = Record<string, string>;
// Without streams, an answer is JSON however long the run takes.
const accept = { accept: 'application/json' };
const post = (body: unknown, headers: Headers = {}): Promise<Response> =>
  served.post('/mcp', body, { ...accept, ...headers });

/** A request of the modern era, with the headers that it needs, or others. */
const modern = (method: string, params: Record<string, unknown> = {}, headers: Headers = {}): Promise<Response> => {
  const name = params.name ?? params.taskId;
  return post(request(method, { _meta: metaOf(), ...params }), { ...headersOf(method, name), ...headers });
};
const call = (name: string, input = 'hi', more: object = {}): Record<string, unknown> => ({
  name,
  arguments: { input },
  ...more,
});
const json = async (response: Response) => ({ status: response.status, body: await response.json() });
const errorOf = async (sent: Promise<Response>): Promise<unknown[]> => {
  const { status, body } = await json(await sent);
  return [status, body.error?.code];
};

it.each(['null', '1', '"text"', '[]'])('a body that is %s is no request', async (body) => {
  const response = await fetch(`${served.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...accept },
    body,
  });
  expect([response.status, (await response.json()).error.code]).toEqual([400, -32600]);
});

it('an older client may name its method in a header before it has agreed on a version, as mcp-remote does', async () => {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'mcp-remote', version: '0.15.1' },
  };
  const { status, body } = await json(await post(request('initialize', params), { 'mcp-method': 'initialize' }));
  expect([status, body.result?.protocolVersion]).toEqual([200, '2025-11-25']);
});

const misspelt = { name: 'echo', arguments: { inptu: 'hi' } };
const future = '2030-01-01';
const list = (meta: object, headers: Headers = {}) => {
  const own = Object.entries(meta).map(([name, value]) => [`io.modelcontextprotocol/${name}`, value]);
  return modern('tools/list', { _meta: { ...metaOf(), ...Object.fromEntries(own) } }, headers);
};

describe('a modern request', () => {
  it.each<[what: string, headers: Headers, status: number, code: number]>([
    ['without its version', { 'mcp-protocol-version': '' }, 400, -32020],
    ['with another version than its body', { 'mcp-protocol-version': '2025-11-25' }, 400, -32020],
    ['with another method than its body', { 'mcp-method': 'tools/list' }, 400, -32020],
    ['with another name than its body', { 'mcp-name': 'other' }, 400, -32020],
    ['with a name that is no base64', { 'mcp-name': '=?base64?%%%?=' }, 400, -32020],
    ['with its name in base64', { 'mcp-name': `=?base64?${btoa('echo')}?=` }, 200, 0],
  ])('%s is answered as the protocol says', async (_, headers, status, code) => {
    const { body, ...answer } = await json(await modern('tools/call', call('echo'), headers));
    expect([answer.status, body.error?.code ?? 0]).toEqual([status, code]);
    expect(body.id).toBe(1);
  });

  it.each<[what: string, send: () => Promise<Response>, status: number, code: number]>([
    ['an unknown method', () => modern('prompts/list'), 404, -32601],
    ['a method of the older era', () => modern('ping'), 404, -32601],
    ['an unknown tool', () => modern('tools/call', call('unknown')), 200, -32602],
    ['arguments that do not fit', () => modern('tools/call', misspelt), 200, -32602],
    ['a cursor that is none', () => modern('tools/list', { cursor: 'ü' }), 200, -32602],
    ['an unknown task', () => modern('tasks/get', { taskId: 'x', _meta: metaOf(tasks) }), 200, -32602],
    ['a task without the extension', () => modern('tasks/get', { taskId: 'x' }), 400, -32021],
    ['capabilities that are none', () => list({ clientCapabilities: 1 }), 400, -32602],
    ['an unknown version', () => list({ protocolVersion: future }, { 'mcp-protocol-version': future }), 400, -32022],
    ['a state that is none', () => modern('tools/call', call('forms', 'yes', { requestState: 'x' })), 200, -32602],
  ])('for %s is refused as the protocol says', async (_, send, status, code) => {
    expect(await errorOf(send())).toEqual([status, code]);
  });

  it('discovers the server', async () => {
    const { body } = await json(await modern('server/discover'));
    expect(body.result).toMatchObject({
      resultType: 'complete',
      supportedVersions: [version, '2025-11-25', '2025-06-18', '2025-03-26'],
      capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'rivulet' } },
    });
  });
});

const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

describe('any request', () => {
  it.each<[what: string, body: unknown, status: number, code: number]>([
    ['an answer without a result and an error', { jsonrpc: '2.0', id: 'x' }, 400, -32600],
    ['a batch', [request('ping')], 400, -32600],
    ['no message', { hello: 1 }, 400, -32600],
    ['another JSON-RPC', { ...request('ping'), jsonrpc: '1.0' }, 400, -32600],
    ['an id that is none', request('ping', {}, { a: 1 }), 400, -32600],
    ['params that are a list', { ...request('ping'), params: [1] }, 400, -32600],
    ['an unknown method', request('unknown'), 200, -32601],
    ['initialize without a version', request('initialize'), 200, -32602],
  ])('that is %s is refused as the protocol says', async (_, body, status, code) => {
    expect(await errorOf(post(body))).toEqual([status, code]);
  });

  const posted = (body: string, headers: Headers = {}) => ({
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });
  const got = (headers: Headers = {}) => ({ method: 'GET', headers: { accept: 'text/event-stream', ...headers } });
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

  it.each<[what: string, init: RequestInit, status: number, code: number]>([
    ['text', posted('x', { 'content-type': 'text/plain' }), 415, -32600],
    ['no JSON', posted('{'), 400, -32700],
    ['from a page of another origin', posted('{}', { origin: 'https://evil.example' }), 403, -32600],
    ['GET', got(), 405, -32600],
    ['DELETE', { method: 'DELETE' }, 405, -32600],
    ['of a version that is none', posted(ping, { 'mcp-protocol-version': '1' }), 400, -32600],
    ['with an event id that is none', got({ 'last-event-id': 'x.y.1' }), 400, -32600],
  ])('that is %s is refused as the protocol says', async (_, init, status, code) => {
    expect(await errorOf(fetch(`${served.url}/mcp`, init))).toEqual([status, code]);
  });

  it('of a method of HTTP that the protocol does not have is refused as the protocol says', async () => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'SEARCH']) {
      for (const path of ['/mcp', '/mcp/']) {
        const answer = await fetch(`${served.url}${path}`, { method });
        expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'POST, GET']);
        expect(await answer.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32600 } });
      }
    }
    const head = await served.app.inject({ method: 'HEAD', url: '/mcp' });
    expect([head.statusCode, head.headers.allow]).toEqual([405, 'POST, GET']);
    const get = await served.app.inject({ method: 'GET', url: '/mcp' });
    expect([get.statusCode, get.headers.allow]).toEqual([405, 'POST']);
    expect((await served.app.inject({ method: 'PUT', url: '/mcp/nowhere' })).statusCode).toBe(404);
  });

  it('to another host is refused', async () => {
    const headers = { host: 'evil.example' };
    const answer = await served.app.inject({ method: 'POST', url: '/mcp', payload: request('ping'), headers });
    expect([answer.statusCode, answer.json().error.code]).toEqual([421, -32600]);
  });

  it('that is a notification is accepted, whatever it says', async () => {
    for (const method of ['notifications/initialized', 'notifications/cancelled', 'notifications/unknown']) {
      const response = await post({ jsonrpc: '2.0', method, params: { requestId: 1 } });
      expect([response.status, await response.text()]).toEqual([202, '']);
    }
  });

  it('that answers what was not asked is accepted, or says that there is no such run', async () => {
    const answer = (id: string) => post({ jsonrpc: '2.0', id, result: { action: 'accept' } });
    expect((await answer('x')).status).toBe(202);
    expect(await errorOf(answer(`${crypto.randomUUID()}:1`))).toEqual([404, -32602]);
  });

  it('keeps the type of its id', async () => {
    for (const id of [0, -1, '1', 'ü"']) {
      const { body } = await json(await post(request('ping', {}, id)));
      expect(body).toEqual({ jsonrpc: '2.0', id, result: {} });
    }
  });

  it('that accepts no stream is answered as JSON when the run has settled', async () => {
    const { body } = await json(
      await served.post('/mcp', request('tools/call', call('tokens', '3')), { accept: 'application/json' }),
    );
    expect(body.result.content).toEqual([{ type: 'text', text: 't0 t1 t2 ' }]);
  });
});

describe('a list of tools', () => {
  it('has for a tool without a schema of its own one that allows what its calls may have', async () => {
    const { tools } = (await json(await post(request('tools/list')))).body.result;
    const { inputSchema } = tools.find(({ name }: { name: string }) => name === 'echo');
    expect(inputSchema).toMatchObject({ type: 'object', required: ['input'] });
    const stray = { name: 'echo', arguments: { input: 'hi', reason: 'to test' } };
    const { result } = (await json(await post(request('tools/call', stray)))).body;
    expect(result.content).toEqual([{ type: 'text', text: 'hi' }]);
    expect(inputSchema).not.toHaveProperty('additionalProperties');
  });

  it('comes in pages, sorted by name', async () => {
    const many = Array.from({ length: 130 }, (_, n) => ({
      ...echo,
      manifest: { ...echo.manifest, name: `echo-${n}` },
    }));
    const { post } = await serve(many);
    const names: string[] = [];
    for (let cursor: string | undefined, pages = 1; ; pages += 1) {
      const { result } = await (
        await post('/mcp', request('tools/list', cursor === undefined ? {} : { cursor }))
      ).json();
      names.push(...result.tools.map(({ name }: { name: string }) => name));
      cursor = result.nextCursor;
      if (cursor !== undefined) continue;
      expect(pages).toBe(2);
      break;
    }
    expect(names).toEqual(many.map(({ manifest }) => manifest.name).sort());
  });
});

describe('a modern call of a tool that names headers', () => {
  const args = { region: 'Köln', order: { count: 42 } };
  const region = `=?base64?${Buffer.from('Köln').toString('base64')}?=`;
  const send = async (headers: Headers, sent: object = args) =>
    json(await modern('tools/call', { name: 'routed', arguments: sent }, headers));

  it.each<[what: string, headers: Headers]>([
    ['as they are', { 'mcp-param-region': region, 'mcp-param-count': '42' }],
    ['with a fraction of 0', { 'mcp-param-region': region, 'mcp-param-count': '42.0' }],
    [
      'and one that it has no argument for',
      { 'mcp-param-region': region, 'mcp-param-count': '42', 'mcp-param-dry': 'x' },
    ],
  ])('is a run where they repeat its arguments, %s', async (_, headers) => {
    const { status, body } = await send(headers);
    expect([status, body.result.content]).toEqual([200, [{ type: 'text', text: JSON.stringify(args) }]]);
  });

  it('takes a text that only begins as base64 for the text', async () => {
    const { body } = await send({ 'mcp-param-region': '=?base64?QQ==' }, { region: '=?base64?QQ==' });
    expect(body.result.isError).toBe(false);
  });

  it.each<[what: string, headers: Headers]>([
    ['one is absent', { 'mcp-param-region': region }],
    ['one is another text', { 'mcp-param-region': 'Bonn', 'mcp-param-count': '42' }],
    ['one is no base64', { 'mcp-param-region': '=?base64?%%?=', 'mcp-param-count': '42' }],
    ['one is another number', { 'mcp-param-region': region, 'mcp-param-count': '43' }],
    ['one is no number', { 'mcp-param-region': region, 'mcp-param-count': '0x2a' }],
  ])('is refused where %s', async (_, headers) => {
    const { status, body } = await send(headers);
    expect([status, body.error]).toEqual([
      400,
      { code: -32020, message: expect.stringMatching(/^Mcp-Param-(Region|Count) /) },
    ]);
  });
});

describe('the question of a modern call', () => {
  it('without forms is refused with what the client lacks, and the run is cancelled', async () => {
    const response = await modern('tools/call', { ...call('forms', 'flat'), _meta: metaOf({}) });
    const run_id = response.headers.get('run-id') ?? '';
    expect(await json(response)).toEqual({
      status: 400,
      body: {
        jsonrpc: '2.0',
        id: 1,
        error: {
          code: -32021,
          message: expect.stringContaining('elicitation'),
          data: { requiredCapabilities: { elicitation: { form: {} } } },
        },
      },
    });
    expect((await finished(served, run_id)).status).toBe('cancelled');
  });

  const asked = async () => {
    const { result } = (await json(await modern('tools/call', call('forms', 'flat')))).body;
    const [key = ''] = Object.keys(result.inputRequests);
    const retry = (more: object) =>
      modern('tools/call', call('forms', 'flat', { requestState: result.requestState, ...more }));
    const answer = (content: object) => retry({ inputResponses: { [key]: { action: 'accept', content } } });
    return { result, retry, answer, run_id: String(result.requestState).slice(0, 36) };
  };

  it('is asked again where its reply is absent, or does not fit', async () => {
    const { result, retry, answer } = await asked();
    for (const sent of [retry({}), retry({ inputResponses: { other: 1 } }), answer({}), answer({ name: 5 })]) {
      const again = await json(await sent);
      expect(again).toMatchObject({ status: 200, body: { result } });
    }
    const { body } = await json(await answer({ name: 'Ada' }));
    expect(body.result.content).toEqual([{ type: 'text', text: 'application/json {"name":"Ada"}' }]);
  });

  it('is answered once: a repeated reply gets the same result', async () => {
    const { answer } = await asked();
    const [one, two] = [await json(await answer({ name: 'Ada' })), await json(await answer({ name: 'Bob' }))];
    expect(two).toEqual(one);
  });

  it('is not answered with a state that is changed, or of another tool', async () => {
    const { result, retry } = await asked();
    const state: string = result.requestState;
    const changed = `${state.slice(0, -2)}${state.endsWith('AA') ? 'BB' : 'AA'}`;
    expect(await errorOf(retry({ requestState: changed }))).toEqual([200, -32602]);
    expect(await errorOf(modern('tools/call', call('echo', 'x', { requestState: state })))).toEqual([200, -32602]);
  });

  it('is refused once the run has ended', async () => {
    const { answer, run_id } = await asked();
    await served.post(`/runs/${run_id}/cancel`);
    await finished(served, run_id);
    expect(await errorOf(answer({ name: 'Ada' }))).toEqual([200, -32602]);
  });
});

describe('the runs of another caller', () => {
  it('are answered as runs that do not exist', async () => {
    const node = await tenantNode();
    const [alice, bob]: [Caller, Caller] = [node.as('alice'), node.as('bob')];
    const headers = { ...accept, 'mcp-protocol-version': version, 'mcp-method': 'tools/call', 'mcp-name': 'ask' };
    const ask = async (as: Caller, more: object = {}) => {
      const body = request('tools/call', { _meta: metaOf(), ...call('ask', 'hi', more) });
      return JSON.parse((await as('/mcp', { method: 'POST', body, headers })).text);
    };
    const { requestState } = (await ask(alice)).result;
    const retry = { requestState, inputResponses: { 1: { action: 'accept', content: { answer: 'yes' } } } };
    expect((await ask(bob, retry)).error.code).toBe(-32602);
    const eventId = `${requestState.slice(0, 36)}.${Buffer.from('[1,null,"m"]').toString('base64url')}.1`;
    expect((await bob('/mcp', { headers: { ...accept, 'last-event-id': eventId } })).status).toBe(404);
    expect((await ask(alice, retry)).result.resultType).toBe('complete');
    expect((await node.as('none')('/mcp', { method: 'POST', body: request('ping') })).status).toBe(401);
  });

  it('are not counted as a run where a request creates none', async () => {
    const node = await tenantNode({ runsPerMinute: 1 });
    const send = (method: string, params: object) =>
      node.as('alice')('/mcp', { method: 'POST', body: request(method, params), headers: accept });
    const statuses = [];
    for (const sent of [
      send('ping', {}),
      send('tools/call', call('echo')),
      send('tools/call', call('echo')),
      send('ping', {}),
    ]) {
      statuses.push((await sent).status);
    }
    expect(statuses.sort()).toEqual([200, 200, 200, 429]);
  });
});

describe('a reply to a question', () => {
  it('is refused before it counts where no further stream may be open', async () => {
    const full = await serve([forms, never], { maxStreams: 1 });
    const send = (name: string, params: object): Promise<Response> =>
      full.post('/mcp', request('tools/call', { name, ...params }), {
        ...headersOf('tools/call', name),
        accept: 'application/json, text/event-stream',
      });
    const asked = await json(await send('forms', { arguments: { input: 'yes' }, _meta: metaOf() }));
    const { requestState } = asked.body.result;
    const progressing = { arguments: { input: '' }, _meta: metaOf({}, { progressToken: 1 }) };
    const open = await send('never', progressing);
    const answer = { requestState, inputResponses: { 1: { action: 'accept', content: { answer: true } } } };
    const refused = await send('forms', { ...answer, _meta: metaOf() });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    const [, run_id] = /^([\da-f-]{36})\./.exec(requestState) ?? [];
    expect((await (await full.get(`/runs/${run_id}`)).json()).status).toBe('awaiting');
    await open.body?.cancel();
  });
});
