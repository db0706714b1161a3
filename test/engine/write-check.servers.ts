import { Redis } from 'ioredis';
import { Client } from 'pg';
import { expect, it } from 'vitest';
import { echo } from '../support/agents.ts';
import { eventually } from '../support/eventually.ts';
import { apiOnly, listen } from '../support/serve.ts';
import { startPostgres, startRedis } from '../support/servers.ts';

type Command = (command: string) => Promise<unknown>;

async function redisCommand(url: string): Promise<{ command: Command; close: () => Promise<unknown> }> {
  const redis = new Redis(url);
  const command: Command = (text) => {
    const [name = '', ...args] = text.split(' ');
    return redis.call(name, args);
  };
  return { command, close: () => redis.quit() };
}

async function postgresCommand(url: string): Promise<{ command: Command; close: () => Promise<unknown> }> {
  const client = new Client(url);
  await client.connect();
  await client.query('SET default_transaction_read_only = off');
  const command: Command = async (text) => {
    await client.query(text);
    await client.query('SELECT pg_reload_conf()');
  };
  return { command, close: () => client.end() };
}

const kinds = {
  redis: { start: startRedis, connect: redisCommand },
  postgres: { start: startPostgres, connect: postgresCommand },
};

const refusals = [
  ['Redis is full', 'redis', 'CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0'],
  ['Redis is a replica', 'redis', 'REPLICAOF 127.0.0.1 1', 'REPLICAOF NO\u0020ONE'],
  [
    'PostgreSQL is read-only',
    'postgres',
    'ALTER SYSTEM SET default_transaction_read_only = on',
    'ALTER SYSTEM RESET default_transaction_read_only',
  ],
] as const;

it.concurrent.for(refusals)(
  'an idle node is not ready while %s',
  async ([, kind, refuse, allow], { skip, onTestFinished }) => {
    const { start, connect } = kinds[kind];
    const server = (await start()) ?? skip(`there is no ${kind} to start`);
    onTestFinished(() => server.stop());
    const { command, close } = await connect(server.url);
    onTestFinished(async () => void (await close()));
    const { app, get } = await listen([echo], { ...apiOnly, store: server.url });
    onTestFinished(() => app.close());
    const readiness = async () => {
      const response = await get('/ready');
      return [response.status, (await response.json()).code ?? 'none'];
    };
    await eventually(async () => expect(await readiness()).toEqual([200, 'none']));
    await command(refuse);
    await eventually(async () => expect(await readiness()).toEqual([503, 'server_error']));
    // It can be read meanwhile.
    await eventually(async () => expect((await get('/runs')).status).toBe(200));
    await command(allow);
    await eventually(async () => expect(await readiness()).toEqual([200, 'none']));
  },
);
