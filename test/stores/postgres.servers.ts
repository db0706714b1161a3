import { Client } from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { schemaVersion } from '../../src/stores/postgres/schema.ts';
import { OutageProxy } from '../support/outage-proxy.ts';
import { postgresPlace } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { damageContract } from './contract-damage.ts';
import { append, end, fresh, linesOf, messageOf } from './writes.ts';

const place = await postgresPlace();
afterAll(() => place?.remove());

describe.skipIf(place === undefined)('a store in PostgreSQL', () => {
  const { url = '', name: schema = '' } = place ?? {};
  const { open, closeAfter } = closedAfterEach();
  const client = async (): Promise<Client> => {
    const one = new Client(url);
    await one.connect();
    closeAfter({ close: () => one.end() });
    return one;
  };

  it('creates its tables once, however many processes open it at the same time', async () => {
    await Promise.all(Array.from({ length: 5 }, () => open(url)));
    const { rows } = await (await client()).query(`SELECT version FROM ${schema}.version`);
    expect(rows).toEqual([{ version: schemaVersion }]);
  });

  it('refuses the tables of a newer Rivulet and of an earlier build, and does not change them', async () => {
    await open(url);
    const other = await client();
    await other.query(`UPDATE ${schema}.version SET version = ${schemaVersion + 1}`);
    await expect(openStore(url)).rejects.toThrow(
      `the schema ${schema} was written by a newer Rivulet (version ${schemaVersion + 1}, this one knows ${schemaVersion})`,
    );
    await other.query(`UPDATE ${schema}.version SET version = 1`);
    await expect(openStore(url)).rejects.toThrow("before Rivulet's first release (version 1); use another schema");
    const { rows } = await other.query(`UPDATE ${schema}.version SET version = ${schemaVersion} RETURNING version`);
    expect(rows).toHaveLength(1);
  });

  it.each([
    [4, 'rests_at', 'parked', 'node', 'readers'],
    [5, 'parked', 'node', 'readers'],
    [6, 'node', 'readers'],
    [7, 'readers'],
  ])('upgrades tables of version %d, which have no column %s', async (version, ...missing) => {
    const made = append(fresh(), ['1']);
    const store = await open(url);
    await store.commit([made]);
    const other = await client();
    for (const column of missing) await other.query(`ALTER TABLE ${schema}.runs DROP COLUMN ${column} CASCADE`);
    if (missing.includes('node')) await other.query(`DROP TABLE ${schema}.nodes`);
    // That of its queue.
    await other.query(`CREATE SCHEMA ${schema}_queue; CREATE TABLE ${schema}_queue.job (id text)`);
    await other.query(`UPDATE ${schema}.version SET version = ${version}`);
    const again = await open(url);
    expect(await again.run(made.row.run_id)).toEqual(made.row);
    expect(await again.claims?.claimRuns('a node', [made.row.agent_name], 10)).toEqual([made.row.run_id]);
    const { rows } = await other.query('SELECT to_regnamespace($1) AS queue', [`${schema}_queue`]);
    expect(rows).toEqual([{ queue: null }]);
    const resting = append({ ...made.row, rests_at: '2026-01-01T00:00:00.000Z', parked: 'why' }, []);
    expect(await again.commit([resting])).toEqual(['taken']);
    expect(await again.run(made.row.run_id)).toEqual(resting.row);
    expect(await again.runs({ parked: true }, undefined, 10)).toContainEqual(resting.row);
    expect(await again.commit([end(resting.row, 'cancelled')])).toEqual(['taken']);
  });

  it('upgrades tables of version 5, which have no column for parked runs, and whose functions replace no resource', async () => {
    await open(url);
    const other = await client();
    await other.query(
      `ALTER TABLE ${schema}.runs DROP COLUMN parked, DROP COLUMN readers, DROP COLUMN node CASCADE; DROP TABLE ${schema}.nodes; DROP FUNCTION ${schema}.take; UPDATE ${schema}.version SET version = 5`,
    );
    const again = await open(url);
    expect(await again.commit([append(fresh(), ['1'])])).toEqual(['taken']);
  });

  it('upgrades functions of version 8, which took all writes of a commit as JSON', async () => {
    await open(url);
    const other = await client();
    await other.query(`SET search_path TO ${schema};
      CREATE FUNCTION keep(text, bigint, json, text[]) RETURNS text[] LANGUAGE sql AS $$ SELECT '{}'::text[] $$;
      UPDATE version SET version = 8`);
    const again = await open(url);
    const first = append(fresh(), ['1']);
    expect(await again.commit([first, append(first.row, ['2'], { grown: true })])).toEqual(['taken', 'taken']);
    const { rows } = await other.query(
      `SELECT FROM pg_proc WHERE proname = 'keep' AND pronamespace = $1::regnamespace`,
      [schema],
    );
    expect(rows).toHaveLength(1);
  });

  it('says that its node has to stop when a newer Rivulet has upgraded the schema', async () => {
    const store = await open(url);
    const other = await client();
    const { rows } = await other.query(
      'SELECT oid::regprocedure AS name, pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname = $1 AND pronamespace = $2::regnamespace',
      ['keep', schema],
    );
    for (const { name } of rows) await other.query(`DROP FUNCTION ${name}`);
    await expect(store.commit([append(fresh(), ['1'])])).rejects.toThrow(
      'another version of Rivulet has replaced the functions of the schema; stop this node',
    );
    for (const { text } of rows) await other.query(text);
    expect(await store.commit([append(fresh(), ['1'])])).toEqual(['taken']);
  });

  it('refuses the events of a run that another node takes over meanwhile, and takes those of other runs', async () => {
    const store = await open(url);
    const runs = [1, 2, 3].map(() => append(fresh(), ['1']));
    await store.commit(runs);
    const [other, watching] = [await client(), await client()];
    const { rows: pids } = await other.query('SELECT pg_backend_pid() AS pid');
    await other.query('BEGIN');
    await other.query(`UPDATE ${schema}.runs SET epoch = 2 WHERE run_id = $1`, [runs[1]?.row.run_id]);
    const commit = store.commit(runs.map(({ row }) => append(row, ['2'], { grown: true })));
    const blocked = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`;
    while ((await watching.query(blocked, [pids[0].pid])).rows[0].n === 0);
    await other.query('COMMIT');
    expect(await commit).toEqual(['taken', 'fenced', 'taken']);
    const logs = await Promise.all(runs.map(({ row }) => linesOf(store, row.run_id)));
    expect(logs).toEqual([['1', '2'], ['1'], ['1', '2']]);
  });

  it('continues with new connections when its own are killed', async () => {
    const store = await open(url, `application_name=killed-${schema}`);
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    await store.run(first.row.run_id);
    const { rows } = await (await client()).query(
      `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'killed-${schema}'`,
    );
    expect(rows.length).toBeGreaterThan(1);
    // A read fails before the store has noticed the end of the connection; a later one succeeds.
    await store.run(first.row.run_id).catch(() => undefined);
    expect(await store.commit([append(first.row, ['2'])])).toEqual(['taken']);
    expect(await store.run(first.row.run_id)).toMatchObject({ last: 2 });
  });

  it('does not apply a commit twice that is still executing when its connection is lost', async () => {
    const proxy = closeAfter(await OutageProxy.open(url));
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

  it('refuses a commit that arrives after a later one was applied', async () => {
    await open(url);
    const one = await client();
    const keep = `SELECT ${schema}.keep('writer', $1, '{}', '{}', '{}', '{}', '{}', '[]', '{}') AS outcomes`;
    for (const number of [1, 2, 2, 5]) expect((await one.query(keep, [number])).rows).toEqual([{ outcomes: [] }]);
    await expect(one.query(keep, [4])).rejects.toThrow('out of date');
  });

  it('repeats a transaction that the database rolled back because of a deadlock', async () => {
    const store = await open(url);
    const [other, watching] = [await client(), await client()];
    const { rows: pids } = await other.query('SELECT pg_backend_pid() AS pid');
    const blocked = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`;
    const touch = (session_id?: string): Promise<unknown> =>
      other.query(`UPDATE ${schema}.sessions SET state = 's' WHERE session_id = $1`, [session_id]);
    /** Returns whether the database has rolled back the store's transaction, and not the other one. */
    const deadlock = async (attempt: number): Promise<boolean> => {
      const sessions = [`a${attempt}-${schema}`, `b${attempt}-${schema}`];
      const writes = (): ReturnType<typeof append>[] =>
        sessions.map((session_id) => append(fresh({ session_id }), ['1'], { history: [`/${fresh().run_id}`] }));
      await store.commit(writes());
      await other.query('BEGIN');
      await touch(sessions[1]);
      const commit = store.commit(writes());
      while ((await watching.query(blocked, [pids[0].pid])).rows[0].n === 0);
      const goesOn = await touch(sessions[0]).then(
        () => true,
        (error) => {
          if (error.code !== '40P01') throw error;
          return false;
        },
      );
      await other.query('COMMIT');
      expect(await commit).toEqual(['taken', 'taken']);
      for (const session_id of sessions) expect((await store.session(session_id))?.history).toHaveLength(2);
      return goesOn;
    };
    // It rolls back the one that has waited for a second: that is the other one where this process was slower than that.
    let attempt = 1;
    while (!(await deadlock(attempt))) attempt += 1;
  });

  it('finds nothing for a text that it could not store', async () => {
    const store = await open(url);
    for (const odd of ['a\0', '\ud800']) {
      expect(await store.run(odd)).toBeUndefined();
      expect(await store.input(odd)).toBeUndefined();
      expect(await store.events(odd, 0, 10)).toEqual([]);
      expect(await store.journal(odd)).toEqual([]);
      expect(await store.runs({ agent_name: odd }, undefined, 10)).toEqual([]);
      expect(await store.runs({ session_id: odd }, odd, 10)).toEqual([]);
      expect(await store.unfinished(odd, odd, 10)).toEqual([]);
      expect(await store.count(odd)).toBe(0);
      expect(await store.key(odd, odd)).toBeUndefined();
      expect(await store.session(odd)).toBeUndefined();
      expect(await store.resources([odd])).toEqual([undefined]);
      expect(await store.figures([odd])).toEqual([]);
      expect(await store.remove(odd)).toBe(true);
      expect(await store.removeSession(odd)).toBe(true);
    }
  });

  it('accepts every commit where transactions are serializable by default', async () => {
    const role = `${schema}_strict`;
    const admin = await client();
    await admin.query(`CREATE ROLE ${role} LOGIN SUPERUSER;
      ALTER ROLE ${role} SET default_transaction_isolation = 'serializable'`);
    closeAfter({ close: () => admin.query(`DROP ROLE ${role}`) });
    const theirs = new URL(url);
    theirs.username = role;
    theirs.searchParams.set('options', '-c geqo=off');
    const stores = await Promise.all([1, 2, 3].map(() => open(theirs.href)));
    const session_id = `strict-${schema}`;
    const commits = Array.from({ length: 90 }, (_, n) => {
      const row = fresh({ session_id, agent_name: session_id });
      const first = append(row, ['1'], messageOf(row, 'question'));
      const last = end(first.row, 'completed', { ended: { tokens: 1, seconds: 1 } });
      return stores[n % 3]?.commit([first, last]);
    });
    expect(await Promise.all(commits)).toEqual(Array(90).fill(['taken', 'taken']));
    expect((await stores[0]?.session(session_id))?.history).toHaveLength(90);
  });

  it('finds rows to clear by an index, however many rows there are', async () => {
    await open(url);
    const one = await client();
    await one.query(`SET search_path TO ${schema}; SET plan_cache_mode = force_generic_plan;
      INSERT INTO events SELECT 'other-' || n / 10, n % 10, 1, '{}' FROM generate_series(1, 20000) AS n;
      INSERT INTO journal (run_id, body) SELECT 'other-' || n / 10, '{}' FROM generate_series(1, 20000) AS n;
      INSERT INTO runs (run_id, agent_name, session_id, epoch, status, status_at, title, created_at, finished_at, tier, attempts,
          on_disconnect, last, snapshot, input)
        SELECT 'other-' || n, 'a', 's-' || n / 10, 1, 'failed', '2026-01-' || n, '', '', '2026-01-' || n, 'pinned', 0,
          'continue', 1, 1, '[]' FROM generate_series(1, 20000) AS n;
      INSERT INTO sessions SELECT 's-' || n FROM generate_series(1, 2000) AS n;
      INSERT INTO removed SELECT 'other-' || n FROM generate_series(1, 20000) AS n;
      ANALYZE events, journal, runs, sessions, removed`);
    /** The plan of a function's statement, made as in the function: without its arguments. */
    const planOf = async (name: string, types: string, values: string): Promise<string> => {
      const { rows } = await one.query('SELECT prosrc FROM pg_proc WHERE oid = $1::regproc', [name]);
      const body = rows[0].prosrc.replaceAll(/\bbefore\b/g, '$2').replaceAll(/\bmax_rows\b/g, '$1');
      await one.query(`PREPARE ${name} (${types}) AS ${body}`);
      const { rows: lines } = await one.query(`EXPLAIN (COSTS OFF) EXECUTE ${name} (${values})`);
      return lines.map((row) => row['QUERY PLAN']).join('\n');
    };
    const logs = await planOf('clear_logs', 'integer', '100');
    for (const index of ['events_pkey', 'journal_pkey', 'removed_pkey']) expect(logs).toContain(index);
    expect(logs).not.toContain('Seq Scan');
    const runs = await planOf('clear_runs', 'integer, text', "100, '2026-01-3'");
    for (const index of ['runs_ended', 'runs_pkey', 'sessions_pkey']) expect(runs).toContain(index);
    expect(runs).not.toContain('Seq Scan');
    await one.query('TRUNCATE events, journal, removed, sessions, runs');
  });

  it('holds few connections, however many calls read', async () => {
    const store = await open(url, `application_name=readers-${schema}`);
    await Promise.all(Array.from({ length: 200 }, (_, n) => store.run(String(n))));
    const { rows } = await (await client()).query(
      `SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'readers-${schema}'`,
    );
    expect(rows[0].n).toBeLessThan(10);
  });
});

describe.skipIf(place === undefined)('a store in PostgreSQL with a damaged run', () => {
  const { url = '', name: schema = '' } = place ?? {};
  damageContract(
    'postgres, without its input and its log',
    () => openStore(url),
    async (run_id) => {
      const one = new Client(url);
      await one.connect();
      await one.query(`UPDATE ${schema}.runs SET input = 'no JSON', status = 'awaiting' WHERE run_id = $1`, [run_id]);
      await one.query(`DELETE FROM ${schema}.events WHERE run_id = $1`, [run_id]);
      await one.end();
    },
  );
});
