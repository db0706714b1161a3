import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/engine/ids.ts';
import type { AuthRequest } from '../../src/http/auth/credentials.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { headersOf, metaOf, request } from '../protocols/mcp/modern.ts';
import { agent, askOnce, echo, never } from '../support/agents.ts';
import { ask, type Served, serve, shared } from '../support/serve.ts';

/** Says its input, and stores it as the session's state. */
const notes = agent('notes', async (input, { session }) => {
  await session.setState('noted');
  return `noted: ${input[0]?.parts[0]?.content}`;
});

const all = ['agents:read', 'runs:read', 'runs:write', 'sessions:read', 'sessions:write'];
const auth = {
  /** Two keys of one principal, and one of the operator; `part` and `root` are limited to some agents. */
  authenticate: ({ headers }: AuthRequest) => {
    if (headers.as === 'whole') return { id: 'alice', scopes: all };
    if (headers.as === 'part') return { id: 'alice', scopes: all, agents: ['ec*'] };
    return headers.as === 'root' ? { id: 'root', scopes: ['admin'], agents: ['echo'] } : undefined;
  },
};
const options = {
  auth,
  webhooks: { secrets: ['the secret of the webhooks of this test'] },
  requestsPerMinute: 0,
  runsPerMinute: 0,
};
const server = shared([echo, notes, askOnce, never], options);
const [whole, part, root] = [{ as: 'whole' }, { as: 'part' }, { as: 'root' }];
const a2a = { 'a2a-version': '1.0' };

interface Begun {
  readonly run_id: string;
  readonly session_id: string;
}

/** Calls an operation of A2A at the address of the server. */
const rpc = async (method: string, params: object, as: Record<string, string>) =>
  (await (await server()).post('/a2a/', { jsonrpc: '2.0', id: 1, method, params }, { ...as, ...a2a })).json();

const begin = async (own: Served, name: string, more: object = {}, headers = {}): Promise<Begun> =>
  (await own.post('/runs', ask(name, `hi ${name}`, more), { ...whole, ...headers })).json();

describe('a key that is limited to some agents', () => {
  let own: Served;
  let shown: Begun;
  let hidden: Begun;
  let open: Begun;
  const session_id = newId();
  beforeAll(async () => {
    own = await server();
    const webhook = { url: 'https://127.0.0.1:9/' };
    hidden = await begin(own, 'notes', { session_id, webhook });
    shown = await begin(own, 'echo', { session_id, webhook });
    open = await begin(own, 'never', { mode: 'async' });
  });

  const list = async (headers: Record<string, string>, query = '') => {
    const { runs } = await (await own.get(`/runs${query}`, headers)).json();
    return runs.map(({ run_id }: Begun) => run_id);
  };

  it('lists only their runs', async () => {
    expect(await list(whole)).toEqual([open.run_id, shown.run_id, hidden.run_id]);
    for (const as of [part, root]) {
      expect(await list(as)).toEqual([shown.run_id]);
      expect(await list(as, `?session_id=${session_id}${as === root ? '&owner=custom:alice' : ''}`)).toEqual([
        shown.run_id,
      ]);
      expect(await list(as, '?agent_name=notes')).toEqual([]);
      expect(await list(as, '?agent_name=echo')).toEqual([shown.run_id]);
    }
  });

  it('gets the runs of other agents as unknown, in every call', async () => {
    const calls: [method: string, path: (id: string) => string][] = [
      ['GET', (id) => `/runs/${id}`],
      ['GET', (id) => `/runs/${id}/events`],
      ['GET', (id) => `/runs/${id}/deliveries`],
      ['POST', (id) => `/runs/${id}/cancel`],
      ['POST', (id) => `/runs/${id}/again`],
      ['POST', (id) => `/runs/${id}/retry`],
      ['POST', (id) => `/runs/${id}/stream-ticket`],
      ['DELETE', (id) => `/runs/${id}`],
      ['GET', (id) => `/v1/responses/resp_${id}`],
      ['POST', (id) => `/v1/responses/resp_${id}/cancel`],
      ['DELETE', (id) => `/v1/responses/resp_${id}`],
      ['GET', (id) => `/runs/${id}/stream`],
    ];
    const configs = ['ListTaskPushNotificationConfigs', 'DeleteTaskPushNotificationConfig'];
    const tasks = ['GetTask', 'CancelTask', 'SubscribeToTask', ...configs];
    for (const as of [part, root]) {
      for (const [method, path] of calls) {
        for (const { run_id } of [hidden, open]) {
          const answer = async (id: string) => {
            const response = await fetch(`${own.url}${path(id)}`, { method, headers: as });
            return [response.status, (await response.text()).replaceAll(id, '<id>')];
          };
          expect([path('<id>'), ...(await answer(run_id))]).toEqual([path('<id>'), ...(await answer(newId()))]);
        }
      }
      for (const method of tasks) {
        for (const { run_id } of [hidden, open]) {
          const answer = (id: string) => rpc(method, { id, taskId: id }, as);
          const text = JSON.stringify(await answer(run_id)).replaceAll(run_id, '<id>');
          const none = newId();
          expect([method, text]).toEqual([method, JSON.stringify(await answer(none)).replaceAll(none, '<id>')]);
        }
      }
    }
    expect((await (await own.get(`/runs/${open.run_id}`, whole)).json()).status).toBe('in-progress');
    expect((await own.get(`/runs/${hidden.run_id}`, whole)).status).toBe(200);
  });

  it('gets their messages of a session, and not its state where other agents have written to it', async () => {
    const read = async (headers: object) => (await own.get(`/sessions/${session_id}`, { ...headers })).json();
    const { history, state } = await read(whole);
    expect([history.length, state]).toEqual([4, expect.any(String)]);
    expect(await read(part)).toEqual({ id: session_id, history: history.slice(2) });
    for (const url of [...history.slice(0, 2), state]) {
      expect((await own.get(new URL(url).pathname, part)).status).toBe(404);
    }
    expect((await own.get(new URL(history[2]).pathname, part)).status).toBe(200);
    const { session_id: other } = await begin(own, 'notes');
    expect((await own.get(`/sessions/${other}`, part)).status).toBe(404);
    expect((await own.get(`/sessions/${other}`, whole)).status).toBe(200);
  });

  it('lists and replays only their webhooks', async () => {
    const deliveries = async (headers: Record<string, string>) =>
      (await (await own.get('/deliveries', headers)).json()).deliveries;
    expect((await deliveries(part)).map(({ run_id }: Begun) => run_id)).toEqual([shown.run_id]);
    const other = (await deliveries(whole)).find(({ run_id }: Begun) => run_id === hidden.run_id);
    const { status } = await own.post(`/deliveries/${other.delivery_id}/replay`, undefined, part);
    expect(status).toBe(404);
  });

  it('gets only their runs in the feed', async () => {
    const stop = new AbortController();
    const headers = { ...part, accept: 'text/event-stream' };
    const feed = await fetch(`${own.url}/runs`, { headers, signal: stop.signal });
    const unseen = await begin(own, 'notes');
    const seen = await begin(own, 'echo');
    let text = '';
    for await (const chunk of feed.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes(`${seen.run_id}`) && text.includes('event: ready')) break;
    }
    stop.abort();
    for (const { run_id } of [unseen, hidden, open]) expect(text).not.toContain(run_id);
    // A feed that goes on from a position reads what has changed since.
    const again = new AbortController();
    const rest = await fetch(`${own.url}/runs`, {
      headers: { ...headers, 'last-event-id': '1' },
      signal: again.signal,
    });
    text = '';
    for await (const chunk of rest.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes('event: ready')) break;
    }
    again.abort();
    expect(text).toContain(shown.run_id);
    for (const { run_id } of [unseen, hidden, open]) expect(text).not.toContain(run_id);
  });

  it('lists only their tasks of A2A', async () => {
    const tasks = async (as: Record<string, string>) => (await rpc('ListTasks', {}, as)).result;
    const { tasks: found, totalSize } = await tasks(part);
    const ids = found.map(({ id }: { id: string }) => id);
    expect([ids.length, ids.includes(shown.run_id), ids.includes(hidden.run_id)]).toEqual([totalSize, true, false]);
    expect((await tasks(whole)).totalSize).toBeGreaterThan(totalSize);
  });

  it('gets other tasks of MCP as unknown', async () => {
    const ofTask = async (method: string, taskId: string) => {
      const extensions = { 'io.modelcontextprotocol/tasks': {} };
      const params = { taskId, _meta: metaOf({ extensions }) };
      const headers = { ...part, ...headersOf(method, taskId), accept: 'application/json, text/event-stream' };
      return (await (await own.post('/mcp', request(method, params), headers)).text()).replaceAll(taskId, '<id>');
    };
    for (const method of ['tasks/get', 'tasks/cancel']) {
      expect(await ofTask(method, open.run_id)).toBe(await ofTask(method, newId()));
    }
    expect((await (await own.get(`/runs/${open.run_id}`, whole)).json()).status).toBe('in-progress');
  });

  it('gets only their turns of a chat', async () => {
    const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }] };
    for (const name of ['notes', 'echo'])
      await (await own.post(`/ai/${name}`, { id: 'chat', messages: [message] }, whole)).text();
    const turns = async (as: Record<string, string>) => {
      const { messages } = await (await own.get('/ai/echo/chat', as)).json();
      return messages.filter(({ role }: { role: string }) => role === 'assistant').length;
    };
    expect([await turns(whole), await turns(part)]).toEqual([2, 1]);
  });

  it('cancels no run of another agent by If-Busy', async () => {
    const session = newId();
    const busy = await begin(own, 'never', { session_id: session, mode: 'async' });
    const headers = { ...part, 'if-busy': 'interrupt' };
    const { run_id } = await begin(own, 'echo', { session_id: session, mode: 'async' }, headers);
    const statusOf = async (id: string) => (await (await own.get(`/runs/${id}`, whole)).json()).status;
    expect([await statusOf(busy.run_id), await statusOf(run_id)]).toEqual(['in-progress', 'created']);
  });

  it('deletes their runs of a session that has others as well, and does not erase what the principal has', async () => {
    const session = newId();
    const kept = await begin(own, 'notes', { session_id: session });
    const gone = await begin(own, 'echo', { session_id: session });
    const remove = (path: string) => fetch(`${own.url}${path}`, { method: 'DELETE', headers: part });
    const erased = await remove('/principals/me/data');
    expect([erased.status, (await erased.json()).data.reason]).toEqual([403, 'agents_limited']);
    expect((await remove(`/sessions/${session}`)).status).toBe(204);
    expect((await own.get(`/runs/${gone.run_id}`, whole)).status).toBe(404);
    expect((await own.get(`/runs/${kept.run_id}`, whole)).status).toBe(200);
    expect((await remove(`/sessions/${session}`)).status).toBe(404);
    const { session_id: alone } = await begin(own, 'echo');
    expect((await remove(`/sessions/${alone}`)).status).toBe(204);
    expect((await own.get(`/sessions/${alone}`, whole)).status).toBe(404);
  });
});

it('a list goes on after the runs that a limited key does not see, however many they are', async () => {
  const store = new MemoryStore();
  const own = await serve([echo, notes], { ...options, store });
  const { run_id } = await begin(own, 'echo');
  const other = (await store.run((await begin(own, 'notes')).run_id)) ?? expect.fail();
  // Ten thousand runs of another agent, of which a list reads as many as it may.
  const runs = store.runs.bind(store);
  let reads = 0;
  store.runs = async (filter, before, limit) => {
    reads += 1;
    return reads <= 20 ? Array.from({ length: limit }, () => other) : runs(filter, before, limit);
  };
  const first = await (await own.get('/runs', part)).json();
  expect(first).toEqual({ runs: [], next_cursor: other.run_id });
  const second = await (await own.get(`/runs?cursor=${first.next_cursor}`, part)).json();
  expect(second.runs.map((one: Begun) => one.run_id)).toEqual([run_id]);
});
