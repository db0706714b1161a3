import type { ServerResponse } from 'node:http';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { mcpTools } from '../../src/remote/mcp.ts';
import { type RemoteAgentOptions, remoteAgent } from '../../src/remote/remote-agent.ts';
import { deferred } from '../support/deferred.ts';
import { endless, endlessLimit, json, listenAs, mcpServer, trickle } from '../support/hostile-servers.ts';
import { ask, serveApi } from '../support/serve.ts';

/** An A2A server that answers each request with a result. */
const a2aServer = (result: object): Promise<string> =>
  listenAs(({ headers, method }, response, { id }) => {
    const url = `http://${headers.host}/`;
    const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
    if (method === 'POST') json(response, { jsonrpc: '2.0', id, result });
    else json(response, { name: 'far', description: 'x', version: '1', supportedInterfaces, skills: [] });
  });

const work = { agent_name: 'far', status: 'in-progress', created_at: '2026-01-31T12:00:00.000Z', output: [] };
const made = { ...work, run_id: '019ac55c-0000-7000-8000-000000000000' };

/** A server of the REST API whose run has these events; a `run` in them has what differs from a run at work. */
const acpServer = (events: readonly { type: string; run?: object; part?: object }[]): Promise<string> => {
  const frames = events
    .map((event) => (event.run === undefined ? event : { ...event, run: { ...made, ...event.run } }))
    .map((event, index) => `id: ${index + 1}\ndata: ${JSON.stringify(event)}\n\n`);
  return listenAs(({ method }, response) => {
    if (method === 'POST') json(response, made);
    else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames.join(''));
  });
};

type Answer = (response: ServerResponse, run: object) => unknown;

const allowNetworks = ['127.0.0.1'];

/** `idleTimeout` passes only while the server sends something, so that a slow machine does not use it up. */
function holdClock(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
}

describe('a hostile MCP server', () => {
  it('that refuses a call with a long text is shown in part', async () => {
    const url = await mcpServer((_, response, { id }) =>
      json(response, { jsonrpc: '2.0', id, error: { code: -1, message: 'e'.repeat(1_000_000) } }),
    );
    const tools = mcpTools(url, { allowNetworks });
    onTestFinished(() => tools.close());
    const error = await lastValueFrom(tools.call('t', {})).catch((thrown) => thrown);
    expect([error.code, error.message.length]).toEqual(['tool_refused', 2_000]);
  });

  it('that never answers is given up after the time for a call, which was not made', async () => {
    const url = await listenAs(() => {});
    const tools = mcpTools(url, { allowNetworks, timeout: 50 });
    onTestFinished(() => tools.close());
    await expect(tools.tools()).rejects.toThrow();
    await expect(lastValueFrom(tools.call('t', {}))).rejects.toMatchObject({ code: 'tool_unreachable' });
  });

  const content = (...parts: object[]) => ({ content: parts });
  it.each<[what: string, status: number, body: object | string, code: string, says: string]>([
    ['the status 500', 500, 'broken', 'tool_call_unknown', 'was cut off by HTTP status 500, and may or may not'],
    ['the status 502', 502, 'no upstream', 'tool_call_unknown', 'HTTP status 502'],
    ['the status 401', 401, '', 'tool_unreachable', 'refuses to serve it: HTTP status 401'],
    ['the status 429', 429, '', 'tool_unreachable', 'HTTP status 429'],
    ['half of a JSON', 200, '{', 'tool_call_unknown', "an answer that is no tool's result"],
    ['an unknown kind of content', 200, content({ type: 'smell' }), 'tool_call_unknown', "no tool's result"],
    [
      'an image that is no base64',
      200,
      content({ type: 'image', data: '%', mimeType: 'a/b' }),
      'tool_call_unknown',
      'no',
    ],
  ])('that answers a call with %s is not said to have missed it', async (_, status, body, code, says) => {
    let calls = 0;
    const url = await mcpServer((_request, response, { id }) => {
      calls += 1;
      const text = typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', id, result: body });
      response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    });
    const tools = mcpTools(url, { allowNetworks });
    onTestFinished(() => tools.close());
    const error = await lastValueFrom(tools.call('t', {})).catch((thrown) => thrown);
    expect([error.code, error.message, calls]).toEqual([code, expect.stringContaining(says), 1]);
  });

  it.each([
    ['an answer byte by byte', 'application/json', ' '],
    ['only comments', 'text/event-stream', ':\n\n'],
  ])('that sends %s is left after the time for a call', async (_, contentType, text) => {
    holdClock();
    let left: Promise<unknown> | undefined;
    const url = await mcpServer((_request, response) => {
      left = trickle(response, contentType, text);
    });
    const tools = mcpTools(url, { allowNetworks, timeout: 2_000 });
    onTestFinished(() => tools.close());
    await expect(lastValueFrom(tools.call('t', {}))).rejects.toMatchObject({ code: 'tool_timeout' });
    await left;
  });

  it.each(['initialize', 'notifications/initialized', 'tools/list'])(
    'that answers %s byte by byte is left after the time for an answer',
    async (slow) => {
      let left: Promise<unknown> | undefined;
      const url = await listenAs((request, response, { id, method = '' }) => {
        if (request.method !== 'POST') response.writeHead(405).end();
        else if (method === slow) left = trickle(response, 'application/json', ' ');
        else if (method === 'initialize') {
          const serverInfo = { name: 'hostile', version: '1' };
          const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
          json(response, { jsonrpc: '2.0', id, result });
        } else if (method.startsWith('notifications/')) response.writeHead(202).end();
        else json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });
      });
      const tools = mcpTools(url, { allowNetworks, timeout: 100 });
      onTestFinished(() => tools.close());
      await expect(tools.tools()).rejects.toThrow();
      await left;
    },
  );

  it('that is a child process without an answer is ended by a close', async () => {
    const { promise: pid, resolve: began } = deferred<number>();
    const url = await listenAs(({ url: path = '' }, response) => {
      response.end();
      began(Number(path.slice(1)));
    });
    const script = `fetch('${url}/' + process.pid); process.stdin.resume(); setInterval(() => {}, 1e6)`;
    const tools = mcpTools({ command: process.execPath, args: ['-e', script] }, { timeout: 3_600_000 });
    const listed = tools.tools().catch((error) => error);
    const child = await pid;
    await tools.close();
    expect(await listed).toBeInstanceOf(Error);
    expect(() => process.kill(child, 0)).toThrow('ESRCH');
  });
});

const far = { allowNetworks, retries: 1, delay: 1, manifest: { name: 'far', description: 'Far away.' } };

describe('a hostile server of the REST API', () => {
  const runOf = async (...events: Parameters<typeof acpServer>[0]) => {
    const served = await serveApi([await remoteAgent(`${await acpServer(events)}/agents/far`, far)]);
    return (await served.post('/runs', ask('far'))).json();
  };
  const message = { role: 'agent', parts: [{ content: 'How many?' }] };
  const awaits = (more: object) => ({
    type: 'run.awaiting',
    run: { status: 'awaiting', await_request: { type: 'message', message, ...more } },
  });

  it.each([
    [
      'a relative URL',
      { type: 'message.part', part: { content_type: 'image/png', content_url: 'a.png' } },
      'answered with an invalid part. part.content_url: expected an absolute URI, such as https://example.com/a, got "a.png".',
    ],
    [
      'two contents',
      { type: 'message.part', part: { content: 'a', content_url: 'https://example.com/a' } },
      'answered with an invalid part. part: has both content and content_url; send one of them.',
    ],
    ['nothing', { type: 'message.part', part: {} }, 'answered with an invalid part. part: has no field.'],
    [
      'a tool that is none',
      awaits({ tool: 'x' }),
      'asked an invalid question. question.tool: expected object, got string.',
    ],
    [
      'a schema that is none',
      awaits({ schema: { type: 'number', minimum: 'x' } }),
      'asked an invalid question. schema is invalid: data/minimum must be number',
    ],
    ['no question', { type: 'run.awaiting', run: { status: 'awaiting' } }, 'awaits a reply, and has sent no question.'],
  ])('that answers with %s is at fault in the error, which names the field', async (_, event, problem) => {
    expect((await runOf(event)).error).toEqual({
      code: 'server_error',
      message: `The remote agent ${problem}`,
      data: { code: 'remote_invalid' },
    });
  });

  it.each([
    ['a text', 'many'],
    ['counts that are texts', { tokens: 'many' }],
    ['negative counts', { tokens: -1 }],
  ])('whose usage is %s ends as its run does, without a usage', async (_, usage) => {
    const part = { content_type: 'text/plain', content: 'Tea.' };
    const run = await runOf(
      { type: 'message.part', part },
      { type: 'run.completed', run: { status: 'completed', usage } },
    );
    expect([run.status, run.usage, run.output[0].parts]).toEqual(['completed', undefined, [part]]);
    const error = { code: 'server_error', message: 'No tea.' };
    expect((await runOf({ type: 'run.failed', run: { status: 'failed', error, usage } })).error).toEqual(error);
  });
});

/** The data of the error of a run, whose agent is behind a URL. */
const errorOf = async (url: string, options: RemoteAgentOptions = {}): Promise<unknown> => {
  const served = await serveApi([await remoteAgent(url, { ...far, ...options })]);
  return (await (await served.post('/runs', ask('far'))).json()).error?.data;
};

const stream = 'text/event-stream';

describe('a hostile server of the REST API, for a run', () => {
  it.each<[what: string, onCreate: Answer, onEvents: Answer, requests: string[]]>([
    ['a run', (response) => endless(response, 'application/json', '"'), json, ['POST']],
    [
      'an event',
      (response) => json(response, made),
      (response) => endless(response, stream, 'data: '),
      ['POST', 'GET'],
    ],
    [
      'a comment',
      (response) => json(response, made),
      (response) => endless(response, stream, '', ': x\n\n'),
      ['POST', 'GET'],
    ],
  ])('that sends %s without an end is asked once', async (_, onCreate, onEvents, requests) => {
    const asked: string[] = [];
    const sent: unknown[] = [];
    const url = await listenAs(({ method = '', url: path = '' }, response) => {
      // The end of the caller's run cancels this one.
      if (path.endsWith('/cancel')) return json(response, made);
      asked.push(method);
      sent.push(method === 'POST' ? onCreate(response, made) : onEvents(response, made));
    });
    expect(await errorOf(`${url}/agents/far`)).toEqual({ code: 'remote_too_large' });
    expect(asked).toEqual(requests);
    expect(await sent.at(-1)).toBeLessThan(endlessLimit);
  });

  it.each([
    ['comments', ': x\n\n'],
    ['comments without blank lines', ':\r\n'],
    ['blank lines', '\n'],
    ['events without data', 'id: 1\nretry: 1\n\n'],
    ['half a name', 'database: 1\n\n'],
  ])('that sends only %s counts as silent', async (_, text) => {
    holdClock();
    const left: Promise<unknown>[] = [];
    const url = await listenAs(({ method }, response) => {
      if (method === 'POST') json(response, made);
      else left.push(trickle(response, stream, text));
    });
    const options = { idleTimeout: 100, retries: 1, delay: 1 };
    expect(await errorOf(`${url}/agents/far`, options)).toEqual({ code: 'remote_unreachable' });
    expect(left).toHaveLength(2);
    await Promise.all(left);
  });

  it('that sends a body without an end, with a status that has none, is left', async () => {
    const left: Promise<unknown>[] = [];
    const url = await listenAs((_, response) => void left.push(endless(response.writeHead(205), '', '')));
    expect(await errorOf(`${url}/agents/far`)).toMatchObject({ code: 'remote_refused' });
    await Promise.all(left);
  });

  it('that sends a run byte by byte counts as silent', async () => {
    holdClock();
    const left: Promise<unknown>[] = [];
    const url = await listenAs((_, response) => void left.push(trickle(response, 'application/json', ' ')));
    const options = { idleTimeout: 100, retries: 0, delay: 1 };
    expect(await errorOf(`${url}/agents/far`, options)).toEqual({ code: 'remote_unreachable' });
    await Promise.all(left);
  });
});

describe('a hostile A2A server', () => {
  it('that sends only comments counts as silent', async () => {
    holdClock();
    const left: Promise<unknown>[] = [];
    const url = await listenAs(({ headers, method }, response) => {
      const supportedInterfaces = [
        { url: `http://${headers.host}/`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      ];
      const card = { name: 'far', description: 'x', version: '1', supportedInterfaces, skills: [] };
      if (method === 'GET') json(response, { ...card, capabilities: { streaming: true } });
      else left.push(trickle(response, stream, ':\n\n'));
    });
    expect(await errorOf(url, { idleTimeout: 200, retries: 0, delay: 1 })).toEqual({ code: 'remote_unreachable' });
    await Promise.all(left);
  });

  it.each(['http://169.254.169.254/', 'file:///etc/passwd'])('whose card names %s is not followed', async (target) => {
    const url = await listenAs((_, response) => {
      const supportedInterfaces = [{ url: target, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
      const card = { name: 'far', description: 'x', version: '1', supportedInterfaces, skills: [] };
      json(response, { ...card, capabilities: { streaming: true }, defaultInputModes: [], defaultOutputModes: [] });
    });
    // A rejection that nothing handles would fail this file.
    expect(await errorOf(url)).toEqual({ code: 'remote_unreachable' });
  });

  it.each([
    ['a page', '<html>', 'card: expected object.'],
    ['nothing', 'null', 'card: expected object, got null.'],
    [
      'a card of version 0.3',
      '{"name":"x","description":"y","url":"http://127.0.0.1/","skills":[]}',
      'card.supportedInterfaces: is required.',
    ],
    [
      'a card of gRPC alone',
      '{"name":"x","description":"y","supportedInterfaces":[{"url":"a","protocolBinding":"GRPC"}]}',
      'card.supportedInterfaces: expected one with JSONRPC or HTTP+JSON.',
    ],
    [
      'a card with odd skills',
      '{"name":"x","description":"y","supportedInterfaces":[],"skills":"none"}',
      'card.skills: expected array, got string.',
    ],
  ])('that has %s instead of a card is asked once, and the error says what is wrong', async (_, body, problem) => {
    let asked = 0;
    const url = await listenAs((_request, response) => {
      asked += 1;
      response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
    const message = `${url}/.well-known/agent-card.json is no agent card of A2A 1.0. ${problem}`;
    await expect(remoteAgent(url, { allowNetworks })).rejects.toMatchObject({ code: 'remote_refused', message });
    expect(await errorOf(url)).toEqual({ code: 'remote_refused' });
    expect(asked).toBe(2);
  });

  it.each([
    [
      'a relative URL',
      { url: 'files/a.png' },
      '.content_url: expected an absolute URI, such as https://example.com/a, got "files/a.png".',
    ],
    [
      'a long media type',
      { text: 'hi', mediaType: `text/${'x'.repeat(300)}` },
      '.content_type: expected string length less or equal to 255.',
    ],
  ])('that answers with %s is at fault in the error, which names the field', async (_, part, problem) => {
    const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [part] };
    const status = { state: 'TASK_STATE_INPUT_REQUIRED', message };
    const answers: [result: object, did: string][] = [
      [{ message }, 'answered with an invalid part. part'],
      [{ task: { id: 't', contextId: 'c', status } }, 'asked an invalid question. question.message.parts[0]'],
    ];
    for (const [result, did] of answers) {
      const url = await a2aServer(result);
      const served = await serveApi([await remoteAgent(url, far)]);
      const { error } = await (await served.post('/runs', ask('far'))).json();
      expect(error).toEqual({
        code: 'server_error',
        message: `The remote agent ${did}${problem}`,
        data: { code: 'remote_invalid' },
      });
    }
  });

  it('whose task has an unknown state is not asked again and again', async () => {
    const url = await a2aServer({ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_DREAMING' } } });
    expect(await errorOf(url)).toEqual({ code: 'remote_invalid' });
  });

  // hostile.clients.ts has endless answers of MCP.
  it('that sends a card without an end is left before it fills the memory', async () => {
    const sent: Promise<number>[] = [];
    const url = await listenAs((_, response) => void sent.push(endless(response, 'application/json', '"')));
    expect(await errorOf(url)).toEqual({ code: 'remote_too_large' });
    for (const bytes of await Promise.all(sent)) expect(bytes).toBeLessThan(endlessLimit);
  });
});
