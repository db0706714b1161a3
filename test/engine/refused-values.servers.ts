import { Redis } from 'ioredis';
import { Client } from 'pg';
import { concat, defer, ignoreElements, of } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Run, ServerOptions } from '../../src/index.ts';
import { openStore } from '../../src/stores/open.ts';
import { agent, askOnce, durable, echo, never } from '../support/agents.ts';
import { ask, finished, type Served, serve } from '../support/serve.ts';
import { postgresPlace, redisPlace, startRedis } from '../support/servers.ts';
import { turn } from '../support/turn.ts';

const webhooks = { secrets: ['the master secret of this test of refused values'] };
const a2a = { 'a2a-version': '1.0' };

const places = { redis: await redisPlace(), postgres: await postgresPlace() };
afterAll(() => Promise.all(Object.values(places).map((place) => place?.remove())));

/** The status of the answer, and the run of an answer that has one. */
async function create(served: Served, body: object): Promise<[number, Run]> {
  const response = await served.post('/runs', body);
  return [response.status, await response.json()];
}

/** The statuses of runs that have not ended. */
async function openRuns(served: Served): Promise<string[]> {
  const { runs }: { runs: Run[] } = await (await served.get('/runs?limit=100')).json();
  return runs.map(({ status }) => status).filter((status) => !['completed', 'failed', 'cancelled'].includes(status));
}

const odd = { 'half a surrogate pair': '\ud83d', 'U+0000': '\0' };

describe.each(['redis', 'postgres'] as const)('a text that %s cannot keep as it is', (name) => {
  const { url = '' } = places[name] ?? {};
  const open = (): Promise<Served> => serve([echo, askOnce, never], { store: url, webhooks });

  it.skipIf(url === '').each(Object.entries(odd))('is refused in a URL, a token and an id: %s', async (_, text) => {
    const served = await open();
    const broken = `https://example.com/${text}`;
    for (const more of [
      { webhook: { url: broken } },
      { session: { id: crypto.randomUUID(), history: [broken] } },
      { session: { id: crypto.randomUUID(), state: broken } },
      { session: { id: text } },
      { session_id: text },
    ]) {
      expect([more, (await create(served, ask('echo', 'hi', more)))[0]]).toEqual([more, 422]);
    }
    const [, { run_id }] = await create(served, ask('never', 'hi', { mode: 'async' }));
    const fine = 'https://example.com/';
    const authentication = { scheme: 'Bearer', credentials: text };
    for (const config of [
      { url: broken },
      { url: fine, id: text },
      { url: fine, token: text },
      { url: fine, authentication },
    ]) {
      const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] };
      const sent = { message, configuration: { taskPushNotificationConfig: config } };
      const answers = [
        await served.post('/a2a/echo/message:send', sent, a2a),
        await served.post(`/a2a/never/tasks/${run_id}/pushNotificationConfigs`, config, a2a),
      ];
      expect([config, answers.map(({ status }) => status)]).toEqual([config, [400, 400]]);
    }
    expect((await served.post(`/runs/${run_id}/cancel`)).status).toBe(202);
    expect((await finished(served, run_id)).status).toBe('cancelled');
    expect(await openRuns(served)).toEqual([]);
  });

  it.skipIf(url === '').each(Object.entries(odd))(
    'is stored in input, metadata and ids of chats: %s',
    async (_, text) => {
      const served = await open();
      const metadata = { kind: 'citation', title: text };
      const input = [{ parts: [{ content: text, name: text, metadata }] }];
      const [status, run] = await create(served, { agent_name: 'echo', input });
      // What an agent says is made well-formed.
      const said = { content: text.toWellFormed(), name: text.toWellFormed() };
      expect([status, run.status, run.output[0]?.parts]).toMatchObject([200, 'completed', [said]]);
      const [, asking] = await create(served, ask('ask'));
      const reply = { await_resume: { message: { parts: [{ content: text }] } } };
      expect((await served.post(`/runs/${asking.run_id}`, reply)).status).toBe(200);
      const message = { role: 'user', content: text };
      const parts = [{ type: 'text', text }];
      const requests: Record<string, object> = {
        '/v1/responses': { model: 'echo', input: text, conversation: text, metadata: { [text]: text }, user: text },
        '/v1/chat/completions': { model: 'echo', messages: [{ ...message, name: text }], user: text },
        '/ai/echo': { id: text, messages: [{ id: text, role: 'user', parts }], trigger: 'submit-message' },
        '/ag-ui/echo': {
          threadId: text,
          runId: text,
          messages: [{ ...message, id: text }],
          tools: [],
          context: [],
          state: {},
        },
        '/a2a/echo/message:send': {
          message: {
            messageId: text,
            contextId: text,
            role: 'ROLE_USER',
            parts: [{ text }],
            metadata: { [text]: text },
          },
        },
      };
      for (const [path, body] of Object.entries(requests)) {
        const answer = await served.post(path, body, a2a);
        expect([path, answer.status, await answer.text()]).toEqual([path, 200, expect.any(String)]);
      }
      expect(await openRuns(served)).toEqual([]);
    },
  );
});

/** Longer than the Redis of the test accepts. */
const refused = `refused${'!'.repeat(2_000_000)}`;

const speaking = [
  agent('speaks', () => of(refused)),
  agent('goes-on', () => concat(of('kept'), defer(turn).pipe(ignoreElements()), of(refused))),
  durable('durable', (_, context) =>
    concat(
      context.step('kept', () => of('kept')),
      of(refused),
    ),
  ),
];

function endsRuns(store: string): void {
  const open = (auth?: ServerOptions['auth']): Promise<Served> =>
    serve([...speaking, echo, never], {
      store,
      auth,
      limits: { pollInterval: 10, sweepInterval: 10, requestTimeout: 60_000 },
    });
  it.each(['speaks', 'goes-on', 'durable'])(
    'ends the run of the agent %s as failed, and no other run',
    async (name) => {
      const served = await open();
      const [, other] = await create(served, ask('never', 'hi', { mode: 'async' }));
      const [, { run_id }] = await create(served, ask(name, 'hi', { mode: 'async' }));
      expect((await finished(served, run_id)).status).toBe('failed');
      expect((await create(served, ask('echo')))[1].status).toBe('completed');
      expect((await served.post(`/runs/${other.run_id}/cancel`)).status).toBe(202);
      expect((await finished(served, other.run_id)).status).toBe('cancelled');
    },
  );

  it.each(['speaks', 'goes-on', 'durable'])('lets the run of the agent %s be cancelled and erased', async (name) => {
    const served = await open();
    const [, { run_id }] = await create(served, ask(name, 'hi', { mode: 'async' }));
    expect([202, 409]).toContain((await served.post(`/runs/${run_id}/cancel`)).status);
    expect(['cancelled', 'failed']).toContain((await finished(served, run_id)).status);
    const erased = await fetch(`${served.url}/runs/${run_id}`, { method: 'DELETE' });
    expect(erased.status).toBe(204);
  });

  it.each(['speaks', 'goes-on', 'durable'])('erases a caller with a run of the agent %s', async (name) => {
    const served = await open({ authenticate: () => ({ id: 'alice', scopes: ['runs:write', 'sessions:write'] }) });
    await create(served, ask(name, 'hi', { mode: 'async' }));
    const erased = await fetch(`${served.url}/principals/me/data`, { method: 'DELETE' });
    expect([erased.status, await erased.json()]).toEqual([200, { runs: 1, sessions: 1 }]);
  });
}

const { url: postgres = '', name: schema = '' } = places.postgres ?? {};

describe.skipIf(postgres === '')('a PostgreSQL that refuses a write for its content', () => {
  const checks: Record<string, string> = {
    constraint: `ALTER TABLE ${schema}.events ADD CONSTRAINT short CHECK (length(body) < 1000000)`,
    trigger: `
      CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'said by the test'; END $$;
      CREATE TRIGGER short BEFORE INSERT ON ${schema}.events FOR EACH ROW WHEN (length(NEW.body) > 1000000)
        EXECUTE FUNCTION ${schema}.refuse()`,
  };

  describe.each(Object.keys(checks))('with a %s', (kind) => {
    const query = async (text = ''): Promise<void> => {
      const admin = new Client(postgres);
      await admin.connect();
      await admin.query(text);
      await admin.end();
    };
    beforeAll(async () => {
      await (await openStore(postgres)).close();
      await query(checks[kind]);
    });
    afterAll(() =>
      query(
        `ALTER TABLE ${schema}.events DROP CONSTRAINT IF EXISTS short; DROP TRIGGER IF EXISTS short ON ${schema}.events`,
      ),
    );
    endsRuns(postgres);
  });
});

const small = await startRedis();
afterAll(() => small?.stop());

describe.skipIf(small === undefined)('a Redis that refuses a write for its length', () => {
  beforeAll(async () => {
    const redis = new Redis(small?.url ?? '');
    await redis.config('SET', 'proto-max-bulk-len', 1_048_576);
    await redis.quit();
  });
  endsRuns(small?.url ?? '');
});
