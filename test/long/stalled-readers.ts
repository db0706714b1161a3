/**
 * Measures the cost of readers that never read: `npx tsx test/long/stalled-readers.ts [readers] [megabytes]`, after
 * `npm run build`; Linux only; about a minute. It opens that many streams of one long run, on a server in a
 * process of its own, never reads from them, and exits with 1 if a limit is exceeded:
 *
 * - memory stays within 100 MB of what it was, at its peak;
 * - other streams do not slow down: a thousand tokens take less than twice the time and 10 ms;
 * - the readers are disconnected after the configured time.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { Proc } from '../support/proc.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject, type Project } from '../support/project.ts';

const [readers = 500, megabytes = 50] = process.argv.slice(2).map(Number);
const stalledAfter = 12_000;
const allowed = { memory: 100, slower: 2, slack: 10 };

const agent = `import { defineAgent } from 'rivulet';
export default defineAgent({ name: 'tokens', description: 'Emits tokens.' }, async function* (input) {
  const [count, size] = input[0].parts[0].content.split(' ').map(Number);
  const text = 'x'.repeat(size);
  for (let n = 0; n < count; n += 1) yield text;
});
`;

interface Round {
  readonly store: string;
  /** Characters of a token. */
  readonly size: number;
}

const broken: string[] = [];
const promise = (kept: boolean, what: string): void => {
  console.log(`  ${kept ? 'kept  ' : 'BROKEN'} ${what}`);
  if (!kept) broken.push(what);
};
const ms = (value: number): string => `${value.toFixed(1)} ms`;
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const post = (url: string, mode: string, count: number, size: number): Promise<Response> =>
  fetch(`${url}/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_name: 'tokens', mode, input: [{ parts: [{ content: `${count} ${size}` }] }] }),
  });

/** The times of some streams of a thousand tokens, one after the other. */
async function times(url: string, count: number): Promise<number[]> {
  const taken: number[] = [];
  while (taken.length < count) {
    const from = performance.now();
    await (await post(url, 'stream', 1_000, 10)).text();
    taken.push(performance.now() - from);
  }
  return taken;
}

/** A run of as many megabytes of events as wanted. */
async function makeRun(url: string, size: number): Promise<string> {
  const { run_id } = await (await post(url, 'async', Math.round((megabytes * 1e6) / (size + 90)), size)).json();
  // Not by its stream: reading it would leave the server with garbage to hide growth in.
  for (;;) {
    const { status } = await (await fetch(`${url}/runs/${run_id}`)).json();
    if (status === 'completed') return run_id;
    if (status !== 'created' && status !== 'in-progress') throw new Error(`the run is ${status}`);
    await wait(200);
  }
}

async function neverRead(url: string, run_id: string): Promise<Socket[]> {
  const { port, host } = new URL(url);
  const sockets = Array.from({ length: readers }, () => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    socket.write(`GET /runs/${run_id}/events HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`);
    return socket;
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  return sockets;
}

function start({ folder }: Project, { store }: Round): RivuletProcess {
  const env = { RIVULET_STALLED_AFTER: String(stalledAfter) };
  return new RivuletProcess(['serve', '--port', '0', '--store', store], env, folder);
}

/** Whether the server still fills sockets, measured by its CPU time without requests. */
async function busy(proc: Proc): Promise<boolean> {
  const before = proc.cpu;
  await wait(500);
  return proc.cpu - before > 0.1;
}

async function measure(server: RivuletProcess, run_id: string): Promise<void> {
  const url = await server.url();
  const proc = new Proc(server.child.pid);
  await times(url, 15);
  const before = median(await times(url, 15));
  const handles = proc.handles;
  const rss = proc.rss;
  proc.resetPeak();

  const sockets = await neverRead(url, run_id);
  const arriving: number[] = [];
  do {
    arriving.push(...(await times(url, 15)));
  } while (await busy(proc));
  const during = await times(url, 30);
  const open = proc.handles - handles;
  console.log(
    `  a stream before ${ms(before)}, while they arrive ${ms(median(arriving))} (worst ${ms(Math.max(...arriving))}), then ${ms(median(during))}`,
  );
  promise(open >= readers, `${open} streams of ${readers} stand still`);
  promise(median(during) < before * allowed.slower + allowed.slack, 'other streams do not slow down');

  const from = performance.now();
  const deadline = 1.5 * stalledAfter;
  while (proc.handles > handles + 10 && performance.now() - from < deadline) await wait(100);
  const seconds = ((performance.now() - from) / 1000).toFixed(1);
  promise(proc.handles <= handles + 10, `they are dropped, ${seconds} s after that was measured`);
  const [grown, peak] = [proc.rss - rss, proc.peak - rss];
  promise(
    peak < allowed.memory,
    `memory was ${rss.toFixed(0)} MB, grew by ${peak.toFixed(0)} at its peak, ${grown.toFixed(0)} at the end`,
  );
  for (const socket of sockets) socket.destroy();
}

async function round(one: Round): Promise<void> {
  console.log(`${readers} readers of a run of ${megabytes} MB in tokens of ${one.size}, ${one.store}`);
  const project = makeProject({ 'agents/tokens.js': agent });
  const inMemory = one.store === 'memory:';
  let server = start(project, one);
  try {
    const run_id = await makeRun(await server.url(), one.size);
    if (!inMemory) {
      // A new process: what the run left behind in the old one would hide what the readers cost.
      await server.stop();
      server = start(project, one);
    }
    await measure(server, run_id);
  } finally {
    await server.stop('SIGKILL');
    project.remove();
  }
}

await round({ store: 'memory:', size: 100 });
await round({ store: 'sqlite:./runs.db', size: 100 });
await round({ store: 'sqlite:./runs.db', size: 10_000 });
if (broken.length > 0) process.exitCode = 1;
