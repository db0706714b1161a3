import { Dice } from './dice.ts';
import { type Known, type Malformed, MalformedRequests, valueOfAnyKind } from './malformed.ts';

/** A request to a route of a protocol, before anything about it is changed. */
interface Target {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

interface MalformedProtocol {
  readonly name: string;
  /** Answered 404 without a route of this path only where the protocol is not served. */
  readonly probe: string;
  targets(known: Known, id: string): readonly [Target, ...Target[]];
  /** Names of parameters of its addresses, and headers that it reads. */
  readonly parameters: readonly [string, ...string[]];
  readonly headers: readonly [string, ...string[]];
  /** Whether a body is that of an error of this protocol. */
  isError(body: string): boolean;
}

function isJson(body: string, isRight: (value: Record<string, unknown>) => boolean): boolean {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && isRight({ ...value });
  } catch {
    return false;
  }
}

const areTexts = (...values: unknown[]): boolean => values.every((value) => typeof value === 'string' && value !== '');

/** ACP's Error object, which the routes without words of their own answer as well. */
export const isErrorObject = (body: string): boolean => isJson(body, ({ code, message }) => areTexts(code, message));

const said = 'hi';

/** The protocols beside the server's own, at their usual addresses. */
const malformedProtocols: readonly [MalformedProtocol, ...MalformedProtocol[]] = [
  {
    name: 'ai-sdk',
    probe: '/ai/echo/x/stream',
    targets: ({ agent }, id) => {
      const user = { id: 'm1', role: 'user', parts: [{ type: 'text', text: said }] };
      const part = { type: 'tool-ask', toolCallId: id, state: 'output-available', input: {}, output: said };
      const body = { id, messages: [user], trigger: 'submit-message' };
      return [
        { method: 'POST', path: `/ai/${agent}`, body },
        {
          method: 'POST',
          path: `/ai/${agent}`,
          body: { ...body, messages: [user, { ...user, id, role: 'assistant', parts: [part] }] },
        },
        { method: 'POST', path: `/ai/${id}`, body },
        { method: 'GET', path: `/ai/${agent}/${id}/stream` },
        { method: 'GET', path: `/ai/${agent}/${id}` },
      ];
    },
    parameters: ['startIndex', 'limit', 'cursor'],
    headers: ['Last-Event-ID', 'Idempotency-Key', 'On-Disconnect', 'If-Busy', 'X-AI-SDK-Version'],
    // A chat shows the body as it is.
    isError: (body) => body.trim() !== '' && !body.startsWith('{'),
  },
  {
    name: 'ag-ui',
    probe: '/ag-ui/echo',
    targets: ({ agent }, id) => {
      const message = { id: 'm1', role: 'user', content: said };
      const body = {
        threadId: id,
        runId: 'r1',
        state: {},
        messages: [message],
        tools: [],
        context: [],
        forwardedProps: {},
      };
      const call = { id, type: 'function', function: { name: 'look', arguments: '{}' } };
      const calls = [
        message,
        { id: 'm2', role: 'assistant', toolCalls: [call] },
        { id: 'm3', role: 'tool', toolCallId: id, content: said },
      ];
      const reply = { ...body, messages: [], resume: [{ interruptId: id, status: 'resolved', payload: said }] };
      return [
        { method: 'POST', path: `/ag-ui/${agent}`, body },
        { method: 'POST', path: `/ag-ui/${agent}`, body: { ...body, runId: id, messages: calls } },
        { method: 'POST', path: `/ag-ui/${agent}`, body: reply },
        { method: 'POST', path: `/ag-ui/${id}`, body },
        { method: 'GET', path: `/ag-ui/${agent}` },
        { method: 'GET', path: `/ag-ui/${agent}/runs/${id}` },
        { method: 'POST', path: `/ag-ui/${agent}/runs/${id}/cancel`, body: {} },
      ];
    },
    parameters: ['threadId', 'cursor', 'after'],
    headers: ['Last-Event-ID', 'Idempotency-Key', 'On-Disconnect', 'If-Busy'],
    isError: (body) => isJson(body, ({ type, message, code }) => type === 'RUN_ERROR' && areTexts(message, code)),
  },
  {
    name: 'openai',
    probe: '/v1/models',
    targets: ({ agent }, id) => {
      const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: said }] };
      const answer = { type: 'function_call_output', call_id: id, output: said };
      const user = { role: 'user', content: said };
      const call = { role: 'assistant', tool_calls: [{ id, function: { name: 'look', arguments: '{}' } }] };
      const called = [user, call, { role: 'tool', tool_call_id: id, content: said }];
      const chat = { model: agent, messages: [user], stream: true };
      return [
        { method: 'POST', path: '/v1/responses', body: { model: agent, input: [item], stream: true } },
        { method: 'POST', path: '/v1/responses', body: { model: agent, input: [answer], previous_response_id: id } },
        {
          method: 'POST',
          path: '/v1/responses',
          body: { model: agent, input: said, background: true, conversation: id },
        },
        { method: 'POST', path: '/v1/chat/completions', body: { ...chat, stream_options: { include_usage: true } } },
        { method: 'POST', path: '/v1/chat/completions', body: { ...chat, messages: called, stream: false } },
        { method: 'GET', path: `/v1/responses/${id}` },
        { method: 'GET', path: `/v1/responses/${id}/input_items` },
        { method: 'POST', path: `/v1/responses/${id}/cancel`, body: {} },
        { method: 'DELETE', path: `/v1/responses/${id}` },
        { method: 'GET', path: '/v1/models' },
        { method: 'GET', path: `/v1/models/${id}` },
      ];
    },
    parameters: ['stream', 'starting_after', 'limit', 'after', 'order', 'include'],
    headers: ['Last-Event-ID', 'Idempotency-Key', 'On-Disconnect', 'X-Stainless-Retry-Count', 'OpenAI-Organization'],
    isError: (body) =>
      isJson(body, ({ error }) => {
        const { message, type, param, code } = Object(error);
        return areTexts(message, type) && [param, code].every((one) => one === null || typeof one === 'string');
      }),
  },
  {
    name: 'a2a',
    probe: '/a2a/echo/tasks',
    targets: ({ agent }, id) => {
      const message = {
        messageId: 'm1',
        role: 'ROLE_USER',
        contextId: id,
        parts: [{ text: said }, { data: { a: 1 } }],
      };
      const configuration = { acceptedOutputModes: ['text/plain'], historyLength: 1, returnImmediately: true };
      const authentication = { scheme: 'Bearer', credentials: 'c' };
      const config = { id: 'c1', url: 'https://example.com/', token: 't', authentication };
      const configs = `/a2a/${agent}/tasks/${id}/pushNotificationConfigs`;
      const body = { message, configuration, metadata: { a: 1 } };
      const rpc = (method: string, params: object) => ({
        method: 'POST',
        path: `/a2a/${agent}?A2A-Version=1.0`,
        body: { jsonrpc: '2.0', id: 1, method, params },
      });
      return [
        { method: 'POST', path: `/a2a/${agent}/message:send`, body },
        { method: 'POST', path: `/a2a/${agent}/message:stream?A2A-Version=1.0`, body },
        {
          method: 'POST',
          path: `/a2a/${agent}/message:send?A2A-Version=1.0`,
          body: { message: { ...message, taskId: id } },
        },
        { method: 'POST', path: `/a2a/${id}/message:send?A2A-Version=1.0`, body },
        { method: 'GET', path: `/a2a/${agent}/tasks/${id}?A2A-Version=1.0` },
        { method: 'GET', path: `/a2a/${agent}/tasks?A2A-Version=1.0` },
        { method: 'POST', path: `/a2a/${agent}/tasks/${id}:cancel?A2A-Version=1.0`, body: {} },
        { method: 'GET', path: `/a2a/${agent}/tasks/${id}:subscribe?A2A-Version=1.0` },
        { method: 'POST', path: `${configs}?A2A-Version=1.0`, body: config },
        { method: 'GET', path: `${configs}?A2A-Version=1.0` },
        { method: 'GET', path: `${configs}/c1?A2A-Version=1.0` },
        { method: 'GET', path: `/a2a/${id}/.well-known/agent-card.json` },
        rpc('SendMessage', body),
        rpc('SendStreamingMessage', body),
        rpc('GetTask', { id }),
        rpc('ListTasks', { contextId: id, pageSize: 2 }),
        rpc('SubscribeToTask', { id }),
        rpc('CreateTaskPushNotificationConfig', { ...config, taskId: id }),
        rpc('ListTaskPushNotificationConfigs', { taskId: id, pageSize: 2 }),
      ];
    },
    parameters: ['historyLength', 'pageSize', 'pageToken', 'status', 'statusTimestampAfter', 'includeArtifacts'],
    headers: ['Last-Event-ID', 'A2A-Version', 'A2A-Extensions', 'Idempotency-Key', 'On-Disconnect'],
    isError: (body) =>
      isJson(body, ({ error }) => {
        const { message, code, details, data = details } = Object(error);
        const [info] = Array.isArray(data) ? data : [];
        return areTexts(message, info?.reason, info?.domain) && typeof code === 'number';
      }),
  },
  {
    name: 'mcp',
    probe: '/mcp',
    targets: ({ agent }, id) => {
      const meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, extensions: {} },
      };
      const message = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
      const call = { name: agent, arguments: { input: said } };
      const capabilities = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: id, version: '1' } };
      return [
        { method: 'POST', path: '/mcp', body: message('initialize', capabilities) },
        { method: 'POST', path: '/mcp', body: message('tools/list', { cursor: id }) },
        { method: 'POST', path: '/mcp', body: message('tools/call', call) },
        { method: 'POST', path: '/mcp', body: message('tools/call', { ...call, _meta: { progressToken: id } }) },
        {
          method: 'POST',
          path: '/mcp',
          body: message('tools/call', { ...call, requestState: `${id}.1.x`, _meta: meta }),
        },
        { method: 'POST', path: '/mcp', body: message('tasks/get', { taskId: id, _meta: meta }) },
        {
          method: 'POST',
          path: '/mcp',
          body: message('tasks/update', { taskId: id, inputResponses: {}, _meta: meta }),
        },
        { method: 'POST', path: '/mcp', body: { jsonrpc: '2.0', id: `${id}:1`, result: { action: 'accept' } } },
        { method: 'GET', path: '/mcp' },
        { method: 'DELETE', path: '/mcp' },
      ];
    },
    parameters: ['sessionId'],
    headers: ['Last-Event-ID', 'MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name', 'Mcp-Session-Id', 'On-Disconnect'],
    isError: (body) =>
      isJson(body, ({ jsonrpc, error }) => {
        const { code, message } = Object(error);
        return jsonrpc === '2.0' && typeof code === 'number' && areTexts(message);
      }),
  },
  {
    name: 'durable-streams',
    probe: '/runs/x/stream',
    targets: (_, id) => [
      { method: 'GET', path: `/runs/${id}/stream` },
      { method: 'HEAD', path: `/runs/${id}/stream` },
      { method: 'PUT', path: `/runs/${id}/stream`, body: {} },
    ],
    parameters: ['offset', 'live', 'cursor'],
    headers: ['If-None-Match', 'Last-Event-ID', 'Accept'],
    isError: isErrorObject,
  },
];

export interface Checked {
  readonly request: Malformed;
  /** Whether the body of an answer is that of an error, as the protocol of the request has it. */
  readonly isError: (body: string) => boolean;
}

/** Malformed requests to a server's own routes, and to those of each protocol that it serves; the same for a seed. */
export async function malformedRequests(url: string, seed: number, known: Known): Promise<() => Checked> {
  const own = new MalformedRequests(seed, known);
  const dice = new Dice(seed);
  const protocols = await servedProtocols(url);
  return () => {
    const protocol = dice.below(2) === 0 ? undefined : protocols[dice.below(protocols.length)];
    if (protocol === undefined) return { request: own.next(), isError: isErrorObject };
    return { request: malformedRequest(dice, known, protocol), isError: protocol.isError };
  };
}

/** The protocols of which a server has routes. */
async function servedProtocols(url: string): Promise<MalformedProtocol[]> {
  const answers = malformedProtocols.map(async (protocol) => {
    const response = await fetch(url + protocol.probe, { method: protocol.name === 'ag-ui' ? 'POST' : 'GET' });
    return (await response.text()).includes('"route_unknown"') ? [] : [protocol];
  });
  return (await Promise.all(answers)).flat();
}

/** A request of a protocol with something wrong in its body, ids, parameters or headers; and its protocol. */
function malformedRequest(dice: Dice, known: Known, protocol: MalformedProtocol): Malformed {
  const { method, path, body } = dice.of(...protocol.targets(known, idOf(dice, known)));
  const text = body === undefined ? '' : bodyOf(dice, body);
  const pairs = Array.from(
    { length: dice.below(3) },
    () => `${dice.of(...protocol.parameters)}=${parameter(dice, known)}`,
  );
  const target = pairs.length === 0 ? path : `${path}${path.includes('?') ? '&' : '?'}${pairs.join('&')}`;
  const headers = Array.from({ length: dice.below(3) }, () => `${dice.of(...protocol.headers)}: ${header(dice)}\r\n`);
  const type = dice.below(10) === 0 ? dice.of('text/plain', 'application/xml', ';') : 'application/json';
  const content = body === undefined ? '' : `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`;
  const head = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers.join('')}${content}\r\n`;
  return { name: `${protocol.name}, ${method} ${path.slice(0, 60)}`, bytes: Buffer.from(head + text), after: 'answer' };
}

const encoded = (text: string): string => encodeURIComponent(text);

function idOf(dice: Dice, { agent, run_id, session_id }: Known): string {
  return dice.word(
    'chat-1 00000000-0000-4000-8000-000000000000 x __proto__ constructor',
    run_id,
    session_id,
    `resp_${run_id}`,
    `resp_${run_id}_${dice.of('1', '3', '99', '-1', 'x', '9'.repeat(30))}`,
    `conv_${session_id}`,
    `${run_id}.${dice.below(9)}`,
    `fc_${run_id}_2`,
    agent,
    encoded('\u0000'),
    encoded('👋 / ?'),
    encoded("' OR 1=1 --"),
    'f'.repeat(900),
  );
}

const parameter = (dice: Dice, { run_id }: Known): string =>
  encoded(
    dice.word(
      '-1 now 0 3 0000000000000003 1.5 NaN true sse long-poll asc \u0000 __proto__',
      '9'.repeat(16),
      '9'.repeat(400),
      '',
      run_id,
    ),
  );

const header = (dice: Dice): string =>
  dice.word('0 3 3.1 -1 1e9 cancel grace=x * "x" __proto__ {}', '9'.repeat(400), 'a, b', '');

function bodyOf(dice: Dice, body: object): string {
  if (dice.below(8) === 0) return dice.of('', '{', 'null', '[]', '"text"', '5', '{}', '{"__proto__":{"polluted":1}}');
  if (dice.below(8) === 0) return JSON.stringify(body);
  return JSON.stringify(changed(dice, body));
}

/** The value with one of its parts replaced, left out or added; at any depth. */
function changed(dice: Dice, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || dice.below(4) === 0) return valueOfAnyKind(dice);
  if (Array.isArray(value)) {
    const at = dice.below(value.length + 1);
    const one = at < value.length ? changed(dice, value[at]) : valueOfAnyKind(dice);
    return dice.below(6) === 0 ? [...value, ...value, one] : value.toSpliced(at, 1, one);
  }
  const names = Object.keys(value);
  const name = dice.below(8) === 0 ? dice.of('x', 'constructor', 'toString') : (names[dice.below(names.length)] ?? 'x');
  const { [name]: before, ...rest } = { ...value } as Record<string, unknown>;
  return dice.below(6) === 0 ? rest : { ...rest, [name]: changed(dice, before) };
}
