#!/usr/bin/env bash
# The connections of @electric-sql/pglite-socket 0.2.17 are one session of PGlite 0.5.14: they share locks and settings.
#
# Expected: with `maxConnections: 10`, each connection has a session of its own, as with PostgreSQL. A lock that one of them holds
# is refused to the others, `SET` is for one of them, and a notification reaches those that listen.
# Seen: only a transaction keeps the others waiting. Two clients hold one advisory lock at the same time, and it stays when both
# have gone. The `search_path` of one client is that of all, also of those that come later, and a temporary table is everywhere.
# All may `LISTEN`, but a notification reaches only the connection that sends it.
# So: a test on it passes with two leaders, and a worker waits for its next poll. Test what uses locks, settings or notifications
# with PostgreSQL itself. A program can find out when it starts: Rivulet sends itself a notification, and refuses this store.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --legacy-peer-deps @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 pg@8.23.1
cat > show.mjs <<'JS'
import { setTimeout as wait } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import pg from 'pg';

const port = 20_000 + Math.floor(Math.random() * 10_000);
const host = '127.0.0.1';
const server = new PGLiteSocketServer({ db: await PGlite.create(), port, host, maxConnections: 10 });
await server.start();
const connect = async () => {
  const client = new pg.Client({ host, port, user: 'postgres', database: 'postgres' });
  client.on('error', () => {});
  await client.connect();
  return client;
};
/** The first value of the first row. */
const ask = async (client, query) => Object.values((await client.query({ text: query, rowMode: 'array' })).rows[0] ?? ['nothing'])[0];
const [a, b] = [await connect(), await connect()];
const seen = [];

const lock = 'select pg_try_advisory_lock(7)';
seen.push(`lock: a ${await ask(a, lock)}, b ${await ask(b, lock)}`);

await a.query('set search_path to other');
const c = await connect();
seen.push(`search_path of a: ${await ask(b, 'show search_path')} for b, ${await ask(c, 'show search_path')} for a new client`);
await a.query('reset search_path');

await a.query('create temp table scratch as select 1 as one');
seen.push(`temporary table of a: ${await ask(b, 'select one from scratch')} for b`);

const heard = [];
for (const [name, client] of Object.entries({ a, b })) {
  client.on('notification', () => heard.push(name));
  await client.query('listen channel');
}
await a.query("notify channel, 'hello'");
await a.query('select 1');
await b.query('select 1');
await wait(1_000);
seen.push(`notified: ${heard.join(', ') || 'none'}`);

await a.query('begin');
await a.query('create table kept (one int)');
let answered = false;
const waiting = ask(b, "select count(*) from pg_tables where tablename = 'kept'").then((count) => {
  answered = true;
  return count;
});
await wait(500);
const early = answered;
await a.query('rollback');
seen.push(`transaction of a: b ${early ? 'goes on' : 'waits'}, and sees ${await waiting}`);

await Promise.all([a.end(), b.end()]);
seen.push(`locks after both have gone: ${await ask(c, "select count(*) from pg_locks where locktype = 'advisory'")}`);
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 50 node --no-warnings show.mjs)
echo "Node $(node -v): $seen"
[ "$seen" = 'lock: a true, b true; search_path of a: other for b, other for a new client; temporary table of a: 1 for b; notified: a; transaction of a: b waits, and sees 0; locks after both have gone: 1' ]
