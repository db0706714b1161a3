import { Client } from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { OutageProxy } from '../support/outage-proxy.ts';
import { postgresPlace } from '../support/servers.ts';
import { opening } from './opened.ts';
import { append, fresh } from './writes.ts';

const place = await postgresPlace();
afterAll(() => place?.remove());

describe.skipIf(place === undefined)('a store in PostgreSQL', () => {
  const { url = '', name: schema = '' } = place ?? {};
  const { open, closing } = opening();
  const client = async (): Promise<Client> => {
    const one = new Client(url);
    await one.connect();
    closing({ close: () => one.end() });
    return one;
  };

  it('makes its tables once, however many open it at the same time', async () => {
    await Promise.all(Array.from({ length: 5 }, () => open(url)));
    const { rows } = await (await client()).query(`SELECT version FROM ${schema}.version`);
    expect(rows).toEqual([{ version: 2 }]);
  });

  it('does not open the tables of a newer Rivulet, and does not change them', async () => {
    await open(url);
    const other = await client();
    await other.query(`UPDATE ${schema}.version SET version = 7`);
    await expect(openStore(url)).rejects.toThrow(
      `the schema ${schema} was written by a newer Rivulet (version 7, this one knows 2)`,
    );
    const { rows } = await other.query(`UPDATE ${schema}.version SET version = 2 RETURNING version`);
    expect(rows).toHaveLength(1);
  });

  it('goes on with new connections when its own are killed', async () => {
    const store = await open(url, 'application_name=to-be-killed');
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    await store.run(first.row.run_id);
    const { rows } = await (await client()).query(
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'to-be-killed'",
    );
    expect(rows.length).toBeGreaterThan(1);
    // What is read before the end of the connection has been noticed fails; what comes after it does not.
    await store.run(first.row.run_id).catch(() => undefined);
    expect(await store.commit([append(first.row, ['2'])])).toEqual(['taken']);
    expect(await store.run(first.row.run_id)).toMatchObject({ last: 2 });
  });

  it('does not do twice what is still under way when its connection is lost', async () => {
    const proxy = closing(await OutageProxy.open(url));
    const store = await open(proxy.url);
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    const [other, watching] = [await client(), await client()];
    await other.query('BEGIN');
    await other.query(`SELECT FROM ${schema}.runs WHERE run_id = $1 FOR UPDATE`, [first.row.run_id]);
    const waiting = async (event: string): Promise<void> => {
      const blocked = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE $1 AND wait_event = $2`;
      while ((await watching.query(blocked, [`%${schema}"%.keep(%`, event])).rows[0].n === 0);
    };
    const commit = store.commit([append(first.row, ['2'], { history: ['/2'] })]);
    await waiting('transactionid');
    proxy.cut();
    await waiting('advisory');
    await other.query('COMMIT');
    expect(await commit).toEqual(['taken']);
    expect((await store.session(first.row.session_id))?.history).toEqual(['/2']);
  });

  it('refuses a parcel that comes when a later one has been taken', async () => {
    await open(url);
    const one = await client();
    const keep = `SELECT ${schema}.keep('writer', $1, '[]', '{}') AS taken`;
    for (const number of [1, 2, 2, 5]) expect((await one.query(keep, [number])).rows).toEqual([{ taken: [] }]);
    await expect(one.query(keep, [4])).rejects.toThrow('out of date');
  });

  it('does again what the database has undone because of a deadlock', async () => {
    const store = await open(url);
    const sessions = [`a-${schema}`, `b-${schema}`];
    const writes = (): ReturnType<typeof append>[] =>
      sessions.map((session_id) => append(fresh({ session_id }), ['1'], { history: [`/${fresh().run_id}`] }));
    await store.commit(writes());
    const other = await client();
    const touch = (session_id?: string): Promise<unknown> =>
      other.query(`UPDATE ${schema}.sessions SET state = 's' WHERE session_id = $1`, [session_id]);
    await other.query('BEGIN');
    await touch(sessions[1]);
    const commit = store.commit(writes());
    const blocked = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`;
    const watching = await client();
    const { rows: pids } = await other.query('SELECT pg_backend_pid() AS pid');
    while ((await watching.query(blocked, [pids[0].pid])).rows[0].n === 0);
    await touch(sessions[0]);
    await other.query('COMMIT');
    expect(await commit).toEqual(['taken', 'taken']);
    for (const session_id of sessions) expect((await store.session(session_id))?.history).toHaveLength(2);
  });

  it('holds a few connections, however many read', async () => {
    const store = await open(url, 'application_name=many-readers');
    await Promise.all(Array.from({ length: 200 }, (_, n) => store.run(String(n))));
    const { rows } = await (await client()).query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'many-readers'",
    );
    expect(rows[0].n).toBeLessThan(10);
  });
});
