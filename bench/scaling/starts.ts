/** The time to the start of a run, and to its first token. */
import { connect } from 'node:net';
import { Contestant } from '../contestant.ts';
import { requests } from '../load/requests.ts';
import { acp, post, runOf } from '../wires.ts';
import { type Figures, type MeasuredOnce, quantile } from '../work.ts';
import type { Backend } from './backends.ts';
import { withNodes } from './load.ts';
import type { Scale } from './scale.ts';

interface Begin {
  /** Milliseconds from the connection to the event run.in-progress, and to the first token. */
  readonly working: number;
  readonly token: number;
}

const request = acp.request(1, 0);

/** One stream of one token, on a connection of its own. */
function begin(port: number): Promise<Begin> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const begun = performance.now();
    const seen = { working: 0, token: 0 };
    let text = '';
    socket.setEncoding('latin1').setNoDelay(true);
    socket.write(request);
    socket.on('data', (chunk: string) => {
      text += chunk;
      const now = performance.now() - begun;
      if (seen.working === 0 && text.includes('"type":"run.in-progress"')) seen.working = now;
      if (seen.token === 0 && text.includes(acp.marker)) seen.token = now;
      if (text.endsWith('\r\n0\r\n\r\n')) socket.end();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      if (text.includes('"type":"run.completed"')) resolve(seen);
      else reject(new Error(`the run did not complete; the last of it was ${text.slice(-300)}`));
    });
  });
}

const accepted = (answer: string): boolean => answer.startsWith('HTTP/1.1 202');

async function starts(port: number, count: number): Promise<Figures> {
  // Warm-up for the compilers and the first connections.
  for (let n = 0; n < count / 2; n += 1) await begin(port);
  const seen: Begin[] = [];
  for (let n = 0; n < count; n += 1) seen.push(await begin(port));
  const async = post('/runs', runOf('echo', 'async', 'hi'), { connection: 'keep-alive' });
  const answers: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const begun = performance.now();
    await requests({ port, connections: 1, count: 1, request: async, right: accepted });
    answers.push(performance.now() - begun);
  }
  const [working, tokens] = [seen.map((one) => one.working), seen.map((one) => one.token)];
  return {
    'in progress p50, ms': quantile(working, 0.5),
    'p99, ms': quantile(working, 0.99),
    'first token p50, ms': quantile(tokens, 0.5),
    'token p99, ms': quantile(tokens, 0.99),
    'async answered p50, ms': quantile(answers, 0.5),
  };
}

async function inMemory(count: number): Promise<Figures> {
  const memory = { id: 'memory', name: 'memory', file: 'node', args: ['memory:'], wire: acp };
  const server = await Contestant.start(memory, { pinned: false });
  return starts(server.port, count).finally(() => server.stop());
}

export const startsOf = (backends: readonly Backend[], { starts: count }: Scale): MeasuredOnce => ({
  name: 'Start of a run',
  group: 'starts',
  about: `${count} runs, one after the other, each a \`POST\` on a new connection; time from its opening to the event run.in-progress, and to the first token. Elsewhere: one node serves, another one executes.`,
  columns: [
    { name: 'in progress p50, ms', digits: 1 },
    { name: 'p99, ms', digits: 1 },
    { name: 'first token p50, ms', digits: 1 },
    { name: 'token p99, ms', digits: 1 },
    { name: 'async answered p50, ms', digits: 1 },
  ],
  find: async () => {
    const rows = new Map([['memory, one process', await inMemory(count)]]);
    for (const { name, nodes } of backends) {
      const here = await withNodes(nodes(1), ({ executing: [node] }) => starts(node?.port ?? 0, count));
      rows.set(`${name}, same node`, here);
      const elsewhere = await withNodes(nodes(1, 1), ({ serving: [node] }) => starts(node?.port ?? 0, count));
      rows.set(`${name}, elsewhere`, elsewhere);
    }
    return rows;
  },
});
