import { isOver, type Known, type Ledger } from './ledger.ts';
import { sleep } from './measurements.ts';
import { Cut, type Wire } from './wire.ts';

/** Milliseconds between two reports. */
const reportInterval = 5_000;

export interface StallWatchOptions {
  readonly ledger: Ledger;
  readonly nodes: readonly Wire[];
  /** Milliseconds without an event of any run after which the test is abandoned. */
  readonly stallTimeout: number;
  isActive(): boolean;
  report(): void;
  abandon(): void;
}

/** Reports progress while the test is active. If no event arrives any more, adds the open runs to the faults and abandons the test. */
export async function watchForStall(options: StallWatchOptions): Promise<void> {
  const { ledger, nodes, stallTimeout, isActive, report, abandon } = options;
  let reportedAt = performance.now();
  while (isActive()) {
    await sleep(250);
    if (performance.now() - reportedAt > reportInterval) {
      reportedAt = performance.now();
      report();
    }
    if (!isActive() || performance.now() - ledger.lastEventAt < stallTimeout) continue;
    const open = [...ledger.runs.values()].filter((known) => !isOver(known));
    const kind = `no event of any run for ${stallTimeout / 1000} s`;
    ledger.faults.add(kind, `${open.length} of ${ledger.runs.size} acknowledged runs are not final`);
    for (const known of open) ledger.faults.add('a run does not end', await describe(known, nodes));
    return abandon();
  }
}

/** The state of an open run on each node and for each reader. */
async function describe(known: Known, nodes: readonly Wire[]): Promise<string> {
  const { run_id, order, lines, mark, readers, struck } = known;
  const states = await Promise.all(
    nodes.map(async (node, index) => {
      try {
        const [run, events] = [await node.get(`/runs/${run_id}`), await node.get(`/runs/${run_id}/events`)];
        return `n${index} has ${JSON.parse(events).events.length} events, ${JSON.parse(run).status}`;
      } catch (error) {
        return `n${index}: ${error instanceof Cut || error instanceof Error ? error.message : error}`;
      }
    }),
  );
  const positions = readers.map(({ last, node }) => `${last} from ${node}`);
  const act = struck === undefined ? '' : `, ${struck.act} ${Math.round(performance.now() - struck.at)} ms ago`;
  return `run ${run_id} (${order.kind}), last written by ${mark}${act}; readers at ${positions}; ${states.join('; ')}; last: ${lines.at(-1)}`;
}
