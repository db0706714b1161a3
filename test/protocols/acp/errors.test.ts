import { Value } from '@sinclair/typebox/value';
import { describe, expect, it } from 'vitest';
import { errorTable } from '../../../src/core/errors.ts';
import { ErrorBody, ErrorCode, type Run } from '../../../src/index.ts';
import { openStore } from '../../../src/stores/open.ts';
import { agent, askOnce, echo, never } from '../../support/agents.ts';
import { withoutInput } from '../../support/details.ts';
import { ask, finished, type Served, serveApi, shared } from '../../support/serve.ts';

const unknownId = '00000000-0000-4000-8000-000000000000';
const images = agent('images', () => 'ok', { input_content_types: ['image/*', 'application/json'] });
const typed = (content_type: string) => ask('images', '', { input: [{ parts: [{ content: 'a', content_type }] }] });
const input = (more: object) => ask('echo', '', { input: [{ parts: [], ...more }] });
const session = (more: object) => ask('echo', 'a', { session: { id: unknownId, ...more } });
const part = (more: object) => ask('echo', '', { input: [{ parts: [{ content: 'aGk=', ...more }] }] });
const raw = (
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = { 'content-type': 'application/json' },
) => ({ method: 'POST', body, headers });
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

/** Bodies of `POST /runs` that are refused with 422. */
const bodies: [what: string, body: object, says: RegExp][] = [
  ['no agent', { input: [{ parts: [] }] }, /^agent_name: is required/],
  ['no input', { agent_name: 'echo' }, /^input: is required/],
  ['an empty input', { agent_name: 'echo', input: [] }, /^input: expected array length/],
  ['a body that is an array', [], /^body: expected object|^agent_name/],
  ['a bad role', input({ role: 'agent/' }), /^input\[0\]\.role/],
  ['an unknown mode', ask('echo', 'a', { mode: 'later' }), /^mode: expected one of sync, async, stream/],
  ['content and content_url', part({ content_url: 'https://a/b' }), /^input\[0\]\.parts\[0\]: has both/],
  ['an unknown encoding', part({ content_encoding: 'gzip' }), /^input\[0\]\.parts\[0\]\.content_encoding/],
  [
    'base64 that does not decode',
    part({ content: 'a', content_encoding: 'base64' }),
    /^input\[0\]\.parts\[0\]: content is not base64/,
  ],
  ['an invalid date', input({ created_at: '2026-13-01T00:00:00Z' }), /^input\[0\]\.created_at/],
  ['a session id that is no uuid', ask('echo', 'a', { session_id: '1' }), /^session_id/],
  ['a session whose history has no http URLs', session({ history: ['file:///etc/passwd'] }), /^session\.history\[0\]/],
  [
    'a content type that the agent does not accept',
    typed('text/plain'),
    /^input\[0\]\.parts\[0\]: agent images takes image\/\*, application\/json, not text\/plain/,
  ],
  [
    'a leap second',
    input({ created_at: '2016-12-31T23:59:60Z' }),
    /^input\[0\]\.created_at: expected an ISO 8601 date and time of the years 1 to 9999, such as [^,]+, got "2016-/,
  ],
  [
    'a time that is after the year 9999 in UTC',
    input({ completed_at: '9999-12-31T23:59:59-01:00' }),
    /^input\[0\]\.completed_at: expected an ISO 8601 date/,
  ],
  [
    'a relative content_url',
    part({ content: undefined, content_url: '/files/a.png' }),
    /^input\[0\]\.parts\[0\]\.content_url: expected an absolute URI, .* got "\/files\/a\.png"/,
  ],
  [
    'a session with an invalid history URL',
    session({ history: ['http://['] }),
    /^session\.history\[0\]: expected an absolute http or https URL/,
  ],
];

type Case = [what: string, path: string, init: RequestInit | object | undefined, status: number, says: RegExp];

const cases: Case[] = [
  ...bodies.map(([what, body, says]): Case => [what, '/runs', body, 422, says]),
  ['a body that is not JSON', '/runs', raw('{nope'), 400, /not JSON: (?!Body is not)/],
  ['an empty body', '/runs', raw(''), 400, /not JSON: it is empty/],
  ['a body that is null', '/runs', raw('null'), 400, /^The body is null; expected a JSON object/],
  ['a body cut short', '/runs', raw('{"agent_name":"echo","input":['), 400, /not JSON/],
  ['bytes that are not UTF-8', '/runs', raw(new Uint8Array([0x7b, 0xff, 0xfe])), 400, /not JSON/],
  ['a body with __proto__', '/runs', raw('{"__proto__":{"a":1}}'), 400, /the key "__proto__"/],
  [
    'a body nested too deep',
    '/runs',
    raw(`{"agent_name":"echo","input":[{"parts":[],"x":${nested(5000)}}]}`),
    400,
    /nested deeper than 100/,
  ],
  [
    'session ids that differ',
    '/runs',
    ask('echo', 'a', { session_id: unknownId, session: { id: unknownId.replace('4', '5') } }),
    400,
    /session_id is .* but session\.id is/,
  ],
  ['an unknown agent', '/runs', ask('unknown'), 404, /no agent unknown/],
  ['a name that no agent can have', '/runs', ask('../../etc'), 404, /no agent/],
  ['the manifest of an unknown agent', '/agents/unknown', undefined, 404, /no agent unknown/],
  ['a limit of zero', '/agents?limit=0', undefined, 422, /^query\.limit/],
  ['a limit too large', '/agents?limit=1001', undefined, 422, /^query\.limit/],
  ['a limit that is no number', '/agents?limit=ten', undefined, 422, /^query\.limit/],
  ['a limit that is no whole number', '/agents?limit=1.5', undefined, 422, /^query\.limit/],
  ['an offset with an exponent', '/agents?offset=1e3', undefined, 422, /^query\.offset/],
  ['a negative offset', '/agents?offset=-1', undefined, 422, /^query\.offset/],
  ['an unknown run', `/runs/${unknownId}`, undefined, 404, /no run/],
  ['the events of an unknown run', `/runs/${unknownId}/events`, undefined, 404, /no run/],
  ['a run id that is no uuid', '/runs/abc', undefined, 422, /^path\.run_id/],
  ['a cancel of an unknown run', `/runs/${unknownId}/cancel`, { method: 'POST' }, 404, /no run/],
  [
    'a resume of an unknown run',
    `/runs/${unknownId}`,
    { mode: 'sync', await_resume: { type: 'message', message: { parts: [] } } },
    404,
    /no run/,
  ],
  ['runs of a name that no agent can have', '/runs?agent_name=%00', undefined, 404, /no agent/],
  ['an unknown session', `/sessions/${unknownId}`, undefined, 404, /no session/],
  ['an unknown session, spelled the other way', `/session/${unknownId}`, undefined, 404, /no session/],
  ['a session id in the path that is no uuid', '/sessions/1', undefined, 422, /^path\.session_id/],
  ['an unknown resource', `/resources/${unknownId}`, undefined, 404, /no resource/],
  ['a resource id that is no uuid', '/resources/..%2f..', undefined, 422, /^path\.resource_id/],
  ['a path that does not exist', '/nothing/here', undefined, 404, /no GET \/nothing\/here/],
  ['a path that cannot be decoded', '/agents/%ZZ', undefined, 400, /./],
  ['a method that the path does not have', '/agents', { method: 'DELETE' }, 405, /does not take DELETE, only GET/],
  [
    'another media type',
    '/runs',
    raw('a=b', { 'content-type': 'application/x-www-form-urlencoded' }),
    415,
    /Send application\/json in UTF-8; got application\/x-www-form-urlencoded/,
  ],
  [
    'text, which a page of another origin could send',
    '/runs',
    raw('{}', { 'content-type': 'text/plain' }),
    415,
    /text\/plain/,
  ],
  ['too large a body', '/runs', raw(JSON.stringify(ask('echo', 'x'.repeat(200_000)))), 413, /larger/],
];

async function send(served: Served, path: string, init: Case[2]): Promise<Response> {
  if (init === undefined) return served.get(path);
  if ('method' in init) return fetch(`${served.url}${path}`, init as RequestInit);
  return served.post(path, init);
}

describe('the error table', () => {
  const served = shared([echo, images], { bodyLimit: 100_000 });

  it.each(cases)('%s', async (_, path, init, status, says) => {
    const { get } = await served();
    const response = await send(await served(), path, init);
    const body = await response.json();
    expect([response.status, body.code]).toEqual([status, status === 404 ? 'not_found' : 'invalid_input']);
    expect(body.message).toMatch(says);
    expect(body.message).not.toContain('^');
    expect(errorTable).toHaveProperty(body.data.reason);
    expect(Value.Check(ErrorBody, body)).toBe(true);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect((await get('/ping')).status).toBe(200);
  });

  it('accepts an upper-case id and a trailing slash, and answers in lower case', async () => {
    const served = await serveApi([echo]);
    const run: Run = await (await served.post('/runs/', ask('echo'))).json();
    const again: Run = await (await served.get(`/runs/${run.run_id.toUpperCase()}/`)).json();
    expect(withoutInput(again)).toEqual(run);
    const session_id = 'ABCDEF00-0000-4000-8000-000000000000';
    const other: Run = await (await served.post('/runs', ask('echo', 'a', { session_id }))).json();
    expect(other.session_id).toBe(session_id.toLowerCase());
    expect((await served.get(`/sessions/${session_id}`)).status).toBe(200);
  });

  it('answers 409 to a resume of a run that does not await, and of another type', async () => {
    const served = await serveApi([echo, never, askOnce]);
    const body = (type: string) => ({ mode: 'sync', await_resume: { type, message: { parts: [] } } });
    const done: Run = await (await served.post('/runs', ask('echo'))).json();
    const going: Run = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const waiting: Run = await (await served.post('/runs', ask('ask'))).json();
    for (const [id, type, says] of [
      [done.run_id, 'message', /is completed; only an awaiting run/],
      [going.run_id, 'message', /is in-progress; only an awaiting run/],
      [waiting.run_id, 'form', /awaits a resume of type message; got form/],
    ] as const) {
      const response = await served.post(`/runs/${id}`, body(type));
      expect(response.status).toBe(409);
      expect((await response.json()).message).toMatch(says);
    }
    const empty = await served.post(`/runs/${waiting.run_id}`, { mode: 'sync', await_resume: { type: 'message' } });
    expect([empty.status, (await empty.json()).message]).toEqual([422, 'await_resume.message: is required.']);
    expect((await served.post(`/runs/${waiting.run_id}`, body('message'))).status).toBe(200);
  });

  it('treats a resume without mode and type as one in sync mode with a message', async () => {
    const served = await serveApi([askOnce]);
    const { run_id }: Run = await (await served.post('/runs', ask('ask'))).json();
    const response = await served.post(`/runs/${run_id}`, {
      await_resume: { message: { parts: [{ content: 'yes' }] } },
    });
    expect([response.status, (await response.json()).status]).toEqual([200, 'completed']);
  });

  it('answers 409 to a cancel of a final run, and 202 to a cancel with an empty JSON body', async () => {
    const served = await serveApi([echo, never]);
    const done: Run = await (await served.post('/runs', ask('echo'))).json();
    expect((await served.post(`/runs/${done.run_id}/cancel`)).status).toBe(409);
    const going: Run = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const cancel = await fetch(`${served.url}/runs/${going.run_id}/cancel`, raw(''));
    expect([cancel.status, (await cancel.json()).status]).toEqual([202, 'cancelling']);
    expect((await finished(served, going.run_id)).status).toBe('cancelled');
  });

  it.each([
    ['Last-Event-ID', 'abc'],
    ['Last-Event-ID', '-1'],
    ['Last-Event-ID', '7'],
    ['after', '1e3'],
    ['after', '7'],
    ['after', '99999999999999999999'],
  ])('answers 400 to a cursor that the run never had: %s %s', async (name, value) => {
    const served = await serveApi([echo]);
    const { run_id }: Run = await (await served.post('/runs', ask('echo'))).json();
    const headers = { accept: 'text/event-stream', ...(name === 'Last-Event-ID' && { [name]: value }) };
    const response = await served.get(`/runs/${run_id}/events${name === 'after' ? `?after=${value}` : ''}`, headers);
    expect(response.status).toBe(400);
    expect((await response.json()).message).toContain(`${name} is not a cursor of this run: ${value}.`);
    if (name === 'after') return;
    const list = await served.get(`/runs/${run_id}/events?after=1`, { [name]: value });
    expect((await list.json()).message).toContain(`${name} is not a cursor of this run: ${value}.`);
  });

  it('answers 503 without the cause where the store fails, and logs the cause with the id of the request', async () => {
    const lines: string[] = [];
    const store = await openStore('memory:');
    store.session = () => Promise.reject(new Error('secret: hunter2'));
    const logger = { level: 'warn', stream: { write: (line: string) => lines.push(line) } };
    const served = await serveApi([echo], { store, logger });
    const response = await served.get(`/sessions/${unknownId}`);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await response.text()).not.toContain('hunter2');
    const logged = lines.map((line) => JSON.parse(line)).filter(({ err }) => err?.message === 'secret: hunter2');
    expect(logged).toEqual([expect.objectContaining({ request_id: expect.any(String) })]);
  });

  it('answers 500 without the cause of an internal error, and logs the cause with the id of the request', async () => {
    const lines: string[] = [];
    const store = await openStore('memory:');
    // A row that no store would return.
    store.session = async (session_id) => JSON.parse(`{"session_id":"${session_id}","history":null,"state":null}`);
    const logger = { level: 'error', stream: { write: (line: string) => lines.push(line) } };
    const served = await serveApi([echo], { store, logger });
    const response = await served.get(`/sessions/${unknownId}`);
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(text).not.toContain('of null');
    const logged = lines.map((line) => JSON.parse(line)).find(({ err }) => err?.message.includes('of null'));
    expect(JSON.parse(text)).toMatchObject({
      code: 'server_error',
      message: expect.stringContaining(`request ${logged.request_id}`),
      data: { reason: 'internal_error' },
    });
  });

  it('has only codes and statuses of the contract', () => {
    for (const { status, code } of Object.values(errorTable)) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(Value.Check(ErrorCode, code)).toBe(true);
    }
  });
});
