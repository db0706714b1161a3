/**
 * Sends malformed requests, half of them to the protocols beside the server's own:
 * `npx tsx test/long/fuzz.ts [seed] [requests]`, after `npm run build`; Linux only; about a minute. It sends the
 * requests to a server in a process of its own, twenty at a time, and exits with 1 if a response has status 5xx (except
 * 503) or another error than its protocol's, if there is none, if the server stops, or if it leaks resources:
 *
 * - the number of open files and sockets returns to the one before, plus or minus 5;
 * - memory after a second series is at most 40 MB above that after the first, which fills code, caches and the heap;
 *   the runs of valid requests stay in the store.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { type Checked, malformedRequests } from '../support/malformed-protocols.ts';
import { Proc } from '../support/proc.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { excerpt, fault, send } from '../support/raw-http.ts';

const [seed = Date.now() % 1_000_000, total = 10_000] = process.argv.slice(2).map(Number);
const abreast = 20;
const deadline = performance.now() + 240_000;
const agent = `import { defineAgent } from 'rivulet';
export default defineAgent({ name: 'echo', description: 'Echoes.' }, (input) => input);
`;

const faults = new Map<string, number>();
const note = (what: string): void => void faults.set(what, (faults.get(what) ?? 0) + 1);
const statuses = new Map<number, number>();

async function storm(url: string, next: () => Checked, count: number): Promise<void> {
  const port = Number(new URL(url).port);
  const sender = async (): Promise<void> => {
    for (; count > 0 && performance.now() < deadline; ) {
      count -= 1;
      const { request, isError } = next();
      try {
        for (const answer of await send(port, request)) {
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
          const wrong = fault(answer, isError);
          if (wrong !== undefined) note(`${request.name}: ${wrong}, to ${excerpt(request.bytes)}`);
        }
      } catch (error) {
        note(String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: abreast }, sender));
  if (count > 0) note(`time was up, with ${count} requests to go`);
}

async function settled(proc: Proc, handles: number): Promise<void> {
  for (let tries = 0; tries < 100 && proc.handles > handles + 5; tries += 1) await wait(100);
  if (proc.handles > handles + 5) note(`${proc.handles} files and sockets are open, after ${handles} before`);
}

console.log(`seed ${seed}, ${total} requests`);
const project = makeProject({ 'agents/echo.js': agent });
const server = new RivuletProcess(
  ['serve', '--port', '0', '--store', 'memory:'],
  { NODE_OPTIONS: '--max-old-space-size=128', LOG_LEVEL: 'error' },
  project.folder,
);
try {
  const url = await server.url();
  const response = await fetch(`${url}/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_name: 'echo', input: [{ parts: [{ content: 'hi' }] }] }),
  });
  const { run_id, session_id } = await response.json();
  const requests = await malformedRequests(url, seed, { agent: 'echo', run_id, session_id });
  const proc = new Proc(server.child.pid);
  const handles = proc.handles;
  await storm(url, requests, total / 2);
  await settled(proc, handles);
  const first = proc.rss;
  await storm(url, requests, total / 2);
  await settled(proc, handles);
  const grown = proc.rss - first;
  console.log(`memory ${first.toFixed(0)} MB after the first half, ${grown.toFixed(0)} more after the second`);
  console.log(`open files and sockets ${handles} before, ${proc.handles} after`);
  if (grown > 40) note(`memory grew by ${grown.toFixed(0)} MB`);
  const ping = await fetch(`${url}/ping`);
  if (ping.status !== 200) note(`/ping answers ${ping.status}`);
} catch (error) {
  note(`the server is gone: ${error}; it said ${server.err.slice(-2000)}`);
} finally {
  await server.stop('SIGKILL');
  project.remove();
}
console.log(
  [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => `${status}: ${count}`)
    .join(', '),
);
const errors = server.out.split('\n').filter((line) => line.startsWith('{'));
if (errors.length > 0) console.log(`logged ${errors.length} errors, the first: ${errors[0]?.slice(0, 600)}`);
for (const [what, count] of faults) console.log(`BROKEN ${count} × ${what}`);
if (faults.size > 0) process.exitCode = 1;
