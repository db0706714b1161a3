import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { temporaryFolder } from './cleanup.ts';

// `npm run bench:steps -- OTHER [ROUNDS]`: milliseconds for each of 1,000 steps in a row, each of which begins with what the
// last one gave, and for 256 steps side by side, in this checkout and in another one, both built; alternating, on each store.

const [other = '', rounds = '5', measured, store] = process.argv.slice(2);
const inARow = 1_000;
const sideBySide = 256;

/** In a process of its own: runs the agents of a checkout once to warm up, and prints the times of a second run. */
async function measure(folder: string, url: string): Promise<void> {
  const { createRuntime, defineAgent }: typeof import('../src/index.ts') = await import(
    pathToFileURL(resolve(folder, 'dist/index.js')).href
  );
  const manifest = { description: 'Has many steps.' };
  const row = defineAgent(
    { name: 'row', ...manifest },
    async (_, { step }) => {
      for (let n = 0; n < inARow; n += 1) await step('one', async () => n);
      return 'done';
    },
    { durable: true },
  );
  const side = defineAgent(
    { name: 'side', ...manifest },
    async (_, { step }) => {
      await Promise.all(Array.from({ length: sideBySide }, (_, n) => step('one', async () => n)));
      return 'done';
    },
    { durable: true },
  );
  const runtime = await createRuntime({ agents: [row, side], store: url });
  const timeOf = async (name: string): Promise<number> => {
    const begun = performance.now();
    const { status } = await runtime.sync(name, 'go');
    if (status !== 'completed') throw new Error(`${name} is ${status}`);
    return performance.now() - begun;
  };
  for (const name of ['row', 'side']) await timeOf(name);
  console.log(JSON.stringify([(await timeOf('row')) / inARow, await timeOf('side')]));
  await runtime.close();
}

const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN;

const redisUrl = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379/0';
const postgresUrl = process.env.DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/test';
const prefix = `bench_steps_${process.pid}`;

/** Removes what the runs have left in the servers. */
async function clear(count: number): Promise<void> {
  const redis = new Redis(redisUrl);
  for await (const keys of redis.scanStream({ match: `{${prefix}*`, count: 1_000 }))
    if (keys.length > 0) await redis.unlink(...keys);
  redis.disconnect();
  const postgres = new Client(postgresUrl);
  await postgres.connect();
  for (let n = 1; n <= count; n += 1) await postgres.query(`DROP SCHEMA IF EXISTS ${prefix}_${n} CASCADE`);
  await postgres.end();
}

async function compare(): Promise<void> {
  const folder = temporaryFolder();
  let made = 0;
  const stores: Record<string, () => string> = {
    memory: () => 'memory:',
    sqlite: () => `sqlite:${join(folder, `${++made}.db`)}`,
    redis: () => `${redisUrl}?prefix=${prefix}_${++made}`,
    postgres: () => `${postgresUrl}?schema=${prefix}_${++made}`,
  };
  const run = (checkout: string, url: string): [number, number] => {
    const script = [process.argv[1] ?? '', other, rounds, checkout, url];
    const { stdout, status, stderr } = spawnSync('npx', ['tsx', ...script], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  };
  for (const [name, urlOf] of Object.entries(stores)) {
    const [here, there]: [[number, number][], [number, number][]] = [[], []];
    for (let round = 0; round < Number(rounds); round += 1) {
      there.push(run(other, urlOf()));
      here.push(run('.', urlOf()));
    }
    const text = (times: [number, number][]): string =>
      `${median(times.map(([row]) => row)).toFixed(2)} ms a step in a row, ${median(times.map(([, side]) => side)).toFixed(0)} ms for ${sideBySide} at once`;
    console.log(`${name}: this ${text(here)}; other ${text(there)}`);
  }
  await clear(made);
}

if (other === '') throw new Error('expected the folder of another checkout that is built');
if (measured === undefined || store === undefined) await compare();
else await measure(measured, store);
