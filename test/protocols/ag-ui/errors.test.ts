import { describe, expect, it } from 'vitest';
import { askOnce, echo } from '../../support/agents.ts';
import { serveAll } from '../../support/serve.ts';
import { type Caller, tenantNode } from '../../support/tenants.ts';

const served = await serveAll([echo, askOnce]);
let count = 0;
const body = (more: object = {}) => {
  count += 1;
  return { threadId: 't', runId: `run ${count}`, messages: [{ id: 'u1', role: 'user', content: 'hi' }], ...more };
};

const asked = await served.post('/ag-ui/ask', body({ runId: 'asked' }));
const run_id = asked.headers.get('run-id') ?? '';
await asked.text();

describe('a request that is refused', () => {
  const ask = (more: object, headers = {}) => served.post('/ag-ui/ask', body(more), headers);
  const reply = (interruptId: string, status = 'resolved', name = 'ask') =>
    served.post(`/ag-ui/${name}`, body({ resume: [{ interruptId, status }] }));
  const read = (cursor: string) => served.get(`/ag-ui/ask/runs/${run_id}`, { 'last-event-id': cursor });
  const text = { method: 'POST', body: '<a/>', headers: { 'content-type': 'text/xml' } };
  const unknownRole = [{ id: '1', role: 'boss', content: '' }];
  const source = { type: 'url', value: 'data:image/png;base64,@@' };
  const withFile = { id: 'u1', role: 'user', content: [{ type: 'image', source }] };
  const refusals: [what: string, send: () => Promise<Response>, status: number, code: string][] = [
    ['an unknown agent', () => served.post('/ag-ui/unknown', body()), 404, 'agent_unknown'],
    ['an agent name that is none', () => served.post('/ag-ui/%20', body()), 404, 'agent_unknown'],
    ['no body', () => served.post('/ag-ui/echo'), 400, 'body_not_json'],
    ['no messages', () => served.post('/ag-ui/echo', { threadId: 't', runId: 'r' }), 422, 'validation_failed'],
    ['an unknown role', () => ask({ messages: unknownRole }), 422, 'validation_failed'],
    ['a data URL that is none', () => ask({ messages: [withFile] }), 422, 'validation_failed'],
    ['an interrupt that is none', () => reply('x'), 422, 'validation_failed'],
    ['an answer to another event', () => reply(`${run_id}.2`), 409, 'not_awaiting'],
    ['giving up a question that is none', () => reply(`${run_id}.4`, 'cancelled'), 409, 'not_awaiting'],
    ['an answer at another agent', () => reply(`${run_id}.6`, 'resolved', 'echo'), 404, 'run_unknown'],
    [
      'a runId that came with another request',
      () => ask({ runId: 'asked', threadId: 'other' }),
      422,
      'validation_failed',
    ],
    ['a cursor without its run', () => ask({}, { 'last-event-id': '2' }), 404, 'run_unknown'],
    ['a cursor that is none', () => read('x'), 400, 'cursor_invalid'],
    ['a cursor behind the end', () => read('99'), 400, 'cursor_invalid'],
    ['an unknown run', () => served.get('/ag-ui/ask/runs/nothing'), 404, 'run_unknown'],
    ['a run of another agent', () => served.get(`/ag-ui/echo/runs/${run_id}`), 404, 'run_unknown'],
    ['an unknown run to cancel', () => served.post('/ag-ui/ask/runs/nothing/cancel'), 404, 'run_unknown'],
    ['an address that is none', () => served.get('/ag-ui/ask/runs'), 404, 'route_unknown'],
    ['a header that is none', () => ask({}, { 'on-disconnect': 'maybe' }), 422, 'validation_failed'],
    ['no JSON', () => fetch(`${served.url}/ag-ui/echo`, text), 415, 'media_type'],
  ];

  it.each(refusals)('for %s is answered with an error of the protocol', async (_, send, status, code) => {
    const response = await send();
    expect([response.status, await response.json()]).toEqual([
      status,
      { type: 'RUN_ERROR', message: expect.stringMatching(/\S/), code },
    ]);
  });
});

it('takes arguments that are nested too deep for JSON as text', async () => {
  const args = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
  const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: args } };
  const messages = [
    { id: 'u1', role: 'user', content: 'hi' },
    { id: 'a1', role: 'assistant', toolCalls: [call] },
    { id: 't1', role: 'tool', toolCallId: 'c1', content: args },
  ];
  const response = await served.post('/ag-ui/ask', body({ messages }));
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"RUN_FINISHED"')]);
});

describe('the runs of another caller', () => {
  it('are answered as runs that do not exist', async () => {
    const node = await tenantNode();
    const [alice, bob]: [Caller, Caller] = [node.as('alice'), node.as('bob')];
    const asked = await alice('/ag-ui/ask', { method: 'POST', body: body({ runId: 'mine' }) });
    const id = asked.headers['run-id'] ?? '';
    const n = /"id":"[\da-f-]{36}\.(\d+)","reason"/.exec(asked.text)?.[1];
    const answer = (interrupt: string) =>
      body({ resume: [{ interruptId: interrupt, status: 'resolved', payload: 'yes' }] });
    for (const path of [`/ag-ui/ask/runs/ID`, '/ag-ui/ask?runId=ID']) {
      const [theirs, none] = [path.replace('ID', id), path.replace('ID', crypto.randomUUID())];
      expect((await alice(theirs)).status).toBe(200);
      const [got, unknown] = [await bob(theirs), await bob(none)];
      expect([got.status, got.text.replaceAll(/[\da-f-]{36}/g, '')]).toEqual([
        404,
        unknown.text.replaceAll(/[\da-f-]{36}/g, ''),
      ]);
      expect((await bob(path.replace('ID', 'mine'))).status).toBe(404);
    }
    expect((await bob(`/ag-ui/ask/runs/${id}/cancel`, { method: 'POST' })).status).toBe(404);
    expect((await bob('/ag-ui/ask', { method: 'POST', body: answer(`${id}.${n}`) })).status).toBe(404);
    // A runId belongs to its caller.
    const own = await bob('/ag-ui/ask', { method: 'POST', body: body({ runId: 'mine' }) });
    expect([own.status, own.headers['run-id'] === id]).toEqual([200, false]);
    expect((await alice('/ag-ui/ask', { method: 'POST', body: answer(`${id}.${n}`) })).text).toContain('You said ');
  });

  it('without credentials are refused in the shape of the protocol', async () => {
    const node = await tenantNode();
    const { status, text } = await node.as('none')('/ag-ui/ask', { method: 'POST', body: body() });
    expect([status, JSON.parse(text)]).toEqual([
      401,
      { type: 'RUN_ERROR', message: expect.any(String), code: 'unauthenticated' },
    ]);
  });
});
