import { isOver, type Known, type Ledger } from './ledger.ts';
import { passed } from './torment.ts';
import { Cut, type Wire } from './wire.ts';

/** Milliseconds between two reports. */
const reportEvery = 5_000;

export interface WatchOptions {
  readonly ledger: Ledger;
  readonly nodes: readonly Wire[];
  /** Milliseconds in which something has to be heard of some run. */
  readonly requestTimeout: number;
  going(): boolean;
  report(): void;
  /** Nothing will come any more. */
  abandon(): void;
}

/** Reports how it goes; where nothing goes on any more, says what is left, and ends it. */
export async function watch({ ledger, nodes, requestTimeout, going, report, abandon }: WatchOptions): Promise<void> {
  let told = performance.now();
  while (going()) {
    await passed(250);
    if (performance.now() - told > reportEvery) {
      told = performance.now();
      report();
    }
    if (!going() || performance.now() - ledger.heard < requestTimeout) continue;
    const left = [...ledger.runs.values()].filter((known) => !isOver(known));
    const what = `nothing was heard of any run for ${requestTimeout / 1000} s`;
    ledger.faults.add(what, `${left.length} of ${ledger.runs.size} acknowledged runs are not over`);
    for (const known of left) ledger.faults.add('a run does not come to its end', await stateOf(known, nodes));
    return abandon();
  }
}

/** What is known of a run that is left. */
async function stateOf(known: Known, nodes: readonly Wire[]): Promise<string> {
  const { run_id, order, lines, mark, readers, struck } = known;
  const said = await Promise.all(
    nodes.map(async (node, index) => {
      try {
        const [run, events] = [await node.get(`/runs/${run_id}`), await node.get(`/runs/${run_id}/events`)];
        return `n${index} has ${JSON.parse(events).events.length} events, ${JSON.parse(run).status}`;
      } catch (error) {
        return `n${index}: ${error instanceof Cut || error instanceof Error ? error.message : error}`;
      }
    }),
  );
  const seen = readers.map(({ last, node }) => `${last} from ${node}`);
  const then = struck && `, and then a ${struck.act} ${Math.round(performance.now() - struck.at)} ms ago`;
  return `run ${run_id} (${order.kind}), last written by ${mark}${then ?? ''}; readers saw ${seen}; ${said.join('; ')}; last: ${lines.at(-1)}`;
}
