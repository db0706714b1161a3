import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Backend, openBackend } from '../../src/index.ts';
import { echo } from '../support/agents.ts';
import { rivuletHere } from '../support/command.ts';
import { Pooler } from '../support/pooler.ts';
import { ask, serveApi } from '../support/serve.ts';
import { postgresPlace } from '../support/servers.ts';

const place = await postgresPlace();
afterAll(() => place?.remove());

describe.skipIf(place === undefined)('a store in PostgreSQL behind a pooler', () => {
  const { url = '' } = place ?? {};
  const open = async (): Promise<Pooler> => {
    const pooler = await Pooler.open(url);
    onTestFinished(() => pooler.close());
    return pooler;
  };
  const close = async ({ store }: Backend): Promise<string> => {
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

  it('needs no options of its connections', async () => {
    const pooler = await open();
    pooler.dropsOptions = true;
    const served = await serveApi([echo], { store: pooler.url });
    expect((await (await served.post('/runs', ask('echo'))).json()).status).toBe('completed');
  });

  it('does not start, and doctor says why, where the pooler drops notifications', async () => {
    const pooler = await open();
    pooler.dropsNotifications = true;
    const text = 'a notification (LISTEN, NOTIFY) did not arrive';
    const error = await reason(pooler.url);
    expect(error).toContain(text);
    expect(error).toContain('name the PostgreSQL server itself in the URL of the store');
    expect(await doctor(pooler.url)).toContain(text);
  });

  it('is not ready where the pooler drops notifications from some time on', async () => {
    const pooler = await open();
    const served = await serveApi([echo], { store: pooler.url });
    pooler.dropsNotifications = true;
    const answer = await served.get('/ready');
    expect([answer.status, (await answer.json()).data.reason]).toEqual([503, 'store_unavailable']);
  });
});
