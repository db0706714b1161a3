import { join } from 'node:path';
import type { Run } from '../../../src/index.ts';
import { openDatabase } from '../../../src/stores/sqlite/driver.ts';
import { replyTo } from './expected-output.ts';
import type { Ledger } from './ledger.ts';
import { type Durations, sleep } from './measurements.ts';
import type { Acts } from './node-faults.ts';
import type { Order, OrderMix } from './orders.ts';
import { Soak, type SoakOptions } from './soak.ts';
import { forEachConcurrently, type Verified } from './verify.ts';
import { frames, type Wire } from './wire.ts';

export interface ChaosPlan extends Pick<SoakOptions, 'seed' | 'stallTimeout' | 'report'> {
  /** How often the server is killed or stopped. */
  readonly rounds: number;
  /** The number of clients that create runs, and of those that read them. Default 24 and 8. */
  readonly writers?: number;
  readonly readers?: number;
}

export interface ChaosResult {
  readonly seconds: number;
  readonly acts: Acts;
  readonly ledger: Ledger;
  /** Milliseconds from the start of a process until it listens. */
  readonly startTimes: Durations;
  readonly verified: Verified;
}

const orders: OrderMix = {
  kinds: [
    ...(['pinned', 'pinnedAsk', 'sync', 'brief', 'steps', 'merged'] as const),
    ...(['ask', 'askTwice', 'askBoth', 'askWhile', 'session', 'turn'] as const),
  ],
  n: [1, 9],
  ms: [1, 16],
};

/**
 * Kills one server with an SQLite file again and again while clients use it. The ledger has the faults.
 * @throws Error if the server does not start
 */
export function soakChaos({ rounds, writers = 24, readers = 8, stallTimeout = 120_000, ...plan }: ChaosPlan) {
  const store = { nodes: 1, store: 'sqlite:chaos.db' };
  const options = { ...plan, ...store, stallTimeout, clients: writers, orders, direct: true, withoutKey: 0.3 };
  return Soak.run(options, async (soak): Promise<ChaosResult> => {
    const { ledger, nodes } = soak;
    const acts = await soak.load(async () => {
      const auditing = Promise.all(Array.from({ length: readers }, () => soak.auditWhileActive()));
      const done = await killAndRestart(soak, rounds);
      soak.stopOrders();
      await auditing;
      return done;
    });
    const [wire] = soak.nodeWires();
    if (wire !== undefined) await endOpenRuns(wire);
    const verified = await soak.verify({ orders: ordersIn(join(nodes.folder, 'chaos.db')) });
    await nodes.stop();
    for (const [line, count] of nodes.logged) {
      // A server that stops refuses requests, and ends runs that are not durable. A run that was in the memory of several
      // processes which died is named when it is re-entered.
      if (!/The server is stopping|The server stopped before|is re-entered: agent \w+ \(attempt \d+\)/.test(line))
        ledger.faults.add('the server logged an error', `${count} × ${line}`);
    }
    const keys = ordersIn(join(nodes.folder, 'chaos.db'));
    if (new Set([...keys.values()].map(({ key }) => key)).size !== keys.size)
      ledger.faults.add('two runs were created for one order', `${keys.size} runs`);
    return { seconds: soak.seconds, acts, ledger, startTimes: nodes.first.startTimes, verified };
  });
}

/** In one of eight rounds the server is killed while it starts; in one of six others it is stopped instead of killed. */
async function killAndRestart({ nodes, dice, ledger, onAct }: Soak, rounds: number): Promise<Acts> {
  const node = nodes.first;
  const acts = { kill: 0, pause: 0, stop: 0, starts: 0 };
  for (let round = 1; round <= rounds && ledger.faults.count === 0; round += 1) {
    const act = node.up && dice.next() >= 1 / 6 ? 'kill' : node.up ? 'stop' : 'kill';
    acts[act] += 1;
    if (node.up) {
      await sleep(50 + dice.below(550));
      ledger.strike(act, node.mark);
      onAct(act);
      await (act === 'kill' ? node.kill() : node.stop());
    } else {
      onAct('kill during start');
      await node.start(20 + dice.below(880));
    }
    if (round < rounds && dice.next() < 1 / 8) continue;
    await node.start();
    acts.starts += 1;
  }
  if (!node.up) await node.start();
  return acts;
}

/** Replies to the runs that no client knows, and waits for their ends. */
async function endOpenRuns(wire: Wire): Promise<void> {
  const open: Run[] = [];
  for (let cursor = ''; ; ) {
    const page: { runs: Run[]; next_cursor?: string } = JSON.parse(await wire.get(`/runs?limit=100${cursor}`));
    open.push(...page.runs.filter(({ finished_at }) => finished_at === undefined));
    if (page.next_cursor === undefined) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  await forEachConcurrently(open, ({ run_id }) => endRun(wire, run_id));
}

async function endRun(wire: Wire, run_id: string): Promise<void> {
  for (let after = 0; ; ) {
    const stream = await wire.open(`/runs/${run_id}/events?after=${after}`, {
      headers: { accept: 'text/event-stream' },
    });
    if (stream.statusCode === 204) return void stream.resume();
    let question: string | undefined;
    for await (const { id, line } of frames(stream)) {
      after = id;
      if (!line.startsWith('{"type":"run.awaiting"')) continue;
      const run: Run = JSON.parse(await wire.get(`/runs/${run_id}`));
      question = run.await_request?.message.parts[0]?.content;
      if (question !== undefined) break;
    }
    if (question === undefined) return;
    const message = { parts: [{ content: replyTo(question, 'a') }] };
    await wire.call(`/runs/${run_id}`, { body: { mode: 'async', await_resume: { type: 'message', message } } });
  }
}

/** Checks the integrity of the file, and reads the order of each run in it. WAL allows that while the server runs. */
function ordersIn(file: string): ReadonlyMap<string, Order> {
  const db = openDatabase(file, { readOnly: true });
  try {
    const health = db.prepare<[], { integrity_check: string }>('PRAGMA integrity_check').get()?.integrity_check;
    if (health !== 'ok') throw new Error(`PRAGMA integrity_check: ${health}`);
    const rows = db.prepare<[], { run_id: string; input: string }>('SELECT run_id, input FROM runs').all();
    return new Map(rows.map(({ run_id, input }) => [run_id, JSON.parse(JSON.parse(input)[0].parts[0].content)]));
  } finally {
    db.close();
  }
}
