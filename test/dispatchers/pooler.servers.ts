import { Client } from 'pg';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { queueSchema } from '../../src/dispatchers/bullmq/postgres-check.ts';
import { type Backend, openBackend } from '../../src/index.ts';
import { echo } from '../support/agents.ts';
import { rivuletHere } from '../support/command.ts';
import { Pooler } from '../support/pooler.ts';
import { ask, serveApi } from '../support/serve.ts';
import { postgresPlace } from '../support/servers.ts';

const place = await postgresPlace();
afterAll(() => place?.remove());

describe.skipIf(place === undefined)('a queue in PostgreSQL behind a pooler', () => {
  const { url = '', name = '' } = place ?? {};
  const open = async (): Promise<Pooler> => {
    const pooler = await Pooler.open(url);
    onTestFinished(() => pooler.close());
    return pooler;
  };
  const close = async ({ dispatcher, store }: Backend): Promise<string> => {
    await dispatcher.close();
    await store.close();
    return 'it starts';
  };
  const reason = (store: string): Promise<string> => openBackend(store).then(close, String);
  const doctor = async (store: string): Promise<string> => (await rivuletHere(['doctor', '--store', store])).out;

  it('works where the pooler drops nothing', async () => {
    const pooler = await open();
    const served = await serveApi([echo], { store: pooler.url });
    expect((await served.get('/ready')).status).toBe(200);
    expect((await (await served.post('/runs', ask('echo'))).json()).status).toBe('completed');
    expect(await doctor(pooler.url)).toMatch(/ok +store +postgres:/);
  });

  it.each([
    ['drops options', 'dropsOptions', `expected the search_path "${queueSchema(name)}"`],
    ['drops notifications', 'dropsNotifications', 'a notification (LISTEN, NOTIFY) did not arrive'],
  ] as const)('does not start, and doctor says why, where the pooler %s', async (_, drops, text) => {
    const pooler = await open();
    pooler[drops] = true;
    const error = await reason(pooler.url);
    expect(error).toContain('the queue beside the store cannot be opened: ');
    expect(error).toContain(text);
    expect(error).toContain('give the store URL the server itself');
    const out = await doctor(pooler.url);
    expect(out).toContain(`the queue beside the store would not work: ${text}`);
  });

  it.each([
    ['drops options', 'dropsOptions'],
    ['drops notifications', 'dropsNotifications'],
  ] as const)('is not ready where the pooler %s from some time on', async (_, drops) => {
    const pooler = await open();
    const served = await serveApi([echo], { store: pooler.url });
    pooler[drops] = true;
    const answer = await served.get('/ready');
    expect([answer.status, (await answer.json()).data.reason]).toEqual([503, 'store_unavailable']);
  });

  it('says which rights a role lacks, and works as soon as it has them', async () => {
    await close(await openBackend(url));
    const admin = new Client(url);
    await admin.connect();
    const role = `${name}_role`;
    await admin.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA ${name} TO ${role};
      GRANT ALL ON ALL TABLES IN SCHEMA ${name} TO ${role}; GRANT ALL ON ALL SEQUENCES IN SCHEMA ${name} TO ${role}`);
    onTestFinished(async () => {
      await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
      await admin.end();
    });
    const theirs = new URL(url);
    theirs.username = role;
    const needed = `the role "${role}" may not use the schema "${queueSchema(name)}" of the queue; run as its owner: `;
    const error = await reason(theirs.href);
    expect(error).toContain(needed);
    expect(await doctor(theirs.href)).toContain(needed);
    const [usage = '', ...others] = error.slice(error.indexOf(needed) + needed.length).split('; ');
    await admin.query(usage);
    expect(await reason(theirs.href)).toContain(needed);
    await admin.query(others.join('; '));
    const served = await serveApi([echo], { store: theirs.href });
    expect((await (await served.post('/runs', ask('echo'))).json()).status).toBe('completed');
  });

  it('says that a role may not create the schema of the queue', async () => {
    const admin = new Client(url);
    await admin.connect();
    const [role, schema] = [`${name}_other`, `${name}_theirs`];
    await admin.query(`CREATE ROLE ${role} LOGIN; CREATE SCHEMA ${schema} AUTHORIZATION ${role}`);
    onTestFinished(async () => {
      await admin.query(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
      await admin.end();
    });
    const theirs = new URL(url);
    theirs.username = role;
    theirs.searchParams.set('schema', schema);
    expect(await reason(theirs.href)).toMatch(/may not create the schema .* run: GRANT CREATE ON DATABASE "\w+" TO /);
  });
});
