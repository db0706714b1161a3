/**
 * Measures the cost of 100,000 awaiting runs: `tsx test/long/awaiting.ts [runs]`, after a build
 *
 * A server with an SQLite file gets that many runs of a durable agent that awaits. The test measures the growth of memory
 * after they have left it, the time to reply to any of them, the time of a restart, and whether a list of awaiting runs is
 * complete. Prints the figures and the limits, and exits with 1 if one is exceeded. About a minute for 100,000.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { AwaitingServer, awaitingFolder, type Memory, sampleOf } from '../support/awaiting.ts';

const runs = Number(process.argv[2] ?? 100_000);
/** Runs for warm-up, so that memory that V8 and SQLite allocate once does not count. */
const warm = 2_000;
const between = 200;
const mebibyte = 1024 * 1024;

let broken = 0;

function promise(text: string, holds: boolean): void {
  if (!holds) broken += 1;
  console.log(`  ${holds ? 'holds ' : 'BROKEN'}  ${text}`);
}

const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);
const quantile = (values: readonly number[], q: number): number =>
  sorted(values)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? Number.NaN;
const median = (values: readonly number[]): number => quantile(values, 0.5);
const ms = (value: number): string => `${value.toFixed(2)} ms`;
const mib = (value: number): string => `${(value / mebibyte).toFixed(1)} MiB`;

function figures(name: string, times: readonly number[]): void {
  const [low, middle, high, most] = [0, 0.5, 0.99, 1].map((q) => ms(quantile(times, q)));
  console.log(`${name}: ${times.length}, least ${low}, median ${middle}, p99 ${high}, most ${most}`);
}

/**
 * The limit of a reply is three times the first one's time and five milliseconds, for a busy machine. A scan of 100,000 rows,
 * which this test has to detect, takes SQLite fifty milliseconds and more.
 */
const alike = (a: number, b: number): boolean => b <= 3 * a + 5;

/** Of so many, the first and the last ones, but never more than half of them. */
function ends(times: readonly number[], count: number): [number, number] {
  const size = Math.min(count, Math.ceil(times.length / 2));
  return [median(times.slice(0, size)), median(times.slice(-size))];
}

async function make(server: AwaitingServer, count: number): Promise<string[]> {
  const from = performance.now();
  let made = 0;
  const rate = (): string => `${made} runs made, ${Math.round((made / (performance.now() - from)) * 1000)} a second`;
  const timer = setInterval(() => console.log(`  ${rate()}`), 5_000);
  const ids = await server
    .make(count, () => {
      made += 1;
    })
    .finally(() => clearInterval(timer));
  console.log(rate());
  return ids;
}

function compareMemory(before: Memory, after: Memory): void {
  const [rss, heap] = [after.rss - before.rss, after.heapUsed - before.heapUsed];
  console.log(`memory after collection, ${warm} runs behind it: rss ${mib(before.rss)}, heap ${mib(before.heapUsed)}`);
  console.log(`memory after collection, ${runs} runs more: rss ${mib(after.rss)}, heap ${mib(after.heapUsed)}`);
  promise(`${runs} awaiting runs cost less than 50 MB: rss ${mib(rss)}, heap ${mib(heap)}`, Math.max(rss, heap) < 50e6);
}

/** Replies to the first, the last and some other runs, and compares the times with the first one's. */
async function answer(server: AwaitingServer, ids: readonly string[], alone: number): Promise<string[]> {
  const picked = sampleOf(ids, between);
  const times = await server.answerAll(picked);
  figures('answers, one after the other', times);
  const [first, last] = ends(times, 50);
  promise(`the last 50 answers are as fast as the first: ${ms(first)}, ${ms(last)}`, alike(first, last));
  const byAge = picked.map((id, index) => ({ id, time: times[index] ?? 0 })).sort((a, b) => (a.id < b.id ? -1 : 1));
  const [old, young] = ends(
    byAge.map(({ time }) => time),
    50,
  );
  promise(`the 50 newest are as fast as the 50 oldest: ${ms(old)}, ${ms(young)}`, alike(old, young));
  promise(`as fast as among ${warm}: ${ms(alone)}, ${ms(median(times))}`, alike(alone, median(times)));
  // About one reply in thirty waits for a checkpoint of the WAL.
  const p99 = quantile(times, 0.99);
  promise(`99 of 100 take less than five medians and 100 ms: ${ms(p99)}`, p99 < 5 * median(times) + 100);
  return picked;
}

async function page(server: AwaitingServer, expected: readonly string[]): Promise<void> {
  const found: string[] = [];
  const times: number[] = [];
  for await (const { ids, took } of server.awaiting(100)) {
    found.push(...ids);
    times.push(took);
  }
  figures('pages of 100', times);
  const newestFirst = expected.toReversed();
  const exact = found.length === newestFirst.length && found.every((id, index) => id === newestFirst[index]);
  promise(`the pages have exactly the ${newestFirst.length} runs that wait, newest first, once each`, exact);
  const [first, last] = ends(times, 100);
  promise(`the last 100 pages are as fast as the first: ${ms(first)}, ${ms(last)}`, alike(first, last));
}

async function stop(server: AwaitingServer): Promise<void> {
  const from = performance.now();
  const code = await server.stop();
  promise(`the process ends with 0 when told to: ${code}, ${ms(performance.now() - from)}`, code === 0);
}

const { folder, remove } = awaitingFolder();
const servers: AwaitingServer[] = [];
async function start(): Promise<AwaitingServer> {
  const server = await AwaitingServer.start(folder);
  servers.push(server);
  return server;
}

try {
  const first = await start();
  console.log(`start with an empty file: ${ms(first.startup)}`);
  const early = await first.make(warm);
  const fresh = early.slice(warm / 2);
  // The first half is warm-up for the compiler.
  await first.answerAll(early.slice(0, warm / 2));
  const few = await first.answerAll(fresh.slice(0, between));
  figures(`answers among ${warm}`, few);
  const before = await first.memory();
  let left = [...fresh.slice(between), ...(await make(first, runs))];
  const from = performance.now();
  const after = await first.memory();
  console.log(`all have left memory ${ms(performance.now() - from)} after the last was made`);
  compareMemory(before, after);
  console.log(`the file: ${mib(statSync(join(folder, 'awaiting.db')).size)}`);

  const wait = (answered: string[]): string[] => {
    const gone = new Set(answered);
    return left.filter((id) => !gone.has(id));
  };
  left = wait(await answer(first, left, median(few)));
  await stop(first);

  const second = await start();
  const slower = second.startup - first.startup;
  const startup = `start with ${left.length} awaiting runs: ${ms(second.startup)}, ${ms(slower)} more than with none`;
  // It takes 0.5 s of CPU time for 100,000; the rest is for a busy machine.
  promise(`${startup}; 2 s and 10 µs a run may be`, slower < 2_000 + runs / 100);
  const restarted = await second.memory();
  console.log(`memory after the restart: rss ${mib(restarted.rss)}, heap ${mib(restarted.heapUsed)}`);
  // Loading and compiling the code of a reply does not count.
  const waking = sampleOf(left, between);
  await second.answerAll(waking);
  left = wait(waking);
  left = wait(await answer(second, left, median(few)));
  await page(second, left);
  await stop(second);
} finally {
  for (const server of servers) await server.kill();
  remove();
}
console.log(broken === 0 ? 'every promise holds' : `${broken} promises are broken`);
process.exitCode = broken === 0 ? 0 : 1;
