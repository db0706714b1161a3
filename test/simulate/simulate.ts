/*
 * The simulation: several nodes in one process, over one simulated store and queue, in virtual time.
 *
 * A seed draws a plan: clients with the scripts of their agents, and faults. The same seed plays the same events in the
 * same order, because time, timers, ids and random numbers are the simulation's own (`clock.ts`, `globals.ts`,
 * `random.ts`), and one event runs at a time, with all of its promises.
 *
 *   plan.ts           the plan of a seed, its printed form, and smaller plans for the shrinker
 *   script.ts         the acts of an agent: tokens, steps, awaits, races, merges, calls, errors, work after the end
 *   agents.ts         the agents that perform scripts, as Observables and as async generators
 *   faults.ts         faults: refusals, stalls, late answers, lost notifications, lost leases, pauses, crashes
 *   sim-store.ts      the store's server, and a handle for each node that loses, delays and refuses
 *   sim-dispatcher.ts the queue with its leases
 *   sim-node.ts       a node as its clients see it; the only file that calls the engine's methods
 *   world.ts          the nodes, their network, and their faults
 *   clients.ts        create, resume, cancel, delete, with keys and retries; reader.ts reads, drops and reconnects
 *   invariants.ts     what has to hold after every step; verdicts.ts: what has to hold at the end
 *   flaws.ts          deliberate defects of the store and the times; mutations.ts: of the engine's source
 *
 * Faults do only what the ports allow: a commit that is refused was not taken; a commit with a late response was taken;
 * a notification may come twice, late or never; a lease may end while its node is paused or cut off, and the node goes on later.
 * A defect that no store may have (a commit that is refused and taken) is a flaw, not a fault.
 *
 * To find out why a seed fails: `npm run test:simulate -- --seed N` prints the smallest plan that still fails and the
 * last events of each actor; with `--trace`, every event of the plan as it was drawn.
 * To add an invariant, pass its data to `Invariants`, call `ledger.violate`, and add a defect that it detects to
 * `mutations.ts`: `npm run test:simulate -- --mutations` has to notice it.
 */
import { Client } from './clients.ts';
import { install } from './globals.ts';
import type { Violation } from './ledger.ts';
import { drawPlan, type Plan, planLines, smaller } from './plan.ts';
import { Random } from './random.ts';
import { Records } from './records.ts';
import { historyMayChange, judge, openRuns } from './verdicts.ts';
import { type Flaws, World } from './world.ts';

/**
 * Virtual milliseconds without faults and writes after which a store counts as quiet, because every limit has passed.
 */
const calmTime = 70_000;

/** Virtual milliseconds for which every final run has to stay unchanged. */
const overTime = 12_000;

/** The result of a simulation. */
export interface Report {
  readonly plan: Plan;
  readonly violation: Violation | undefined;
  /** The last events of each actor. */
  readonly lines: readonly string[];
  readonly steps: number;
  /** The hash of all recorded events, with the violation; the same for the same plan. */
  readonly events: string;
  readonly runs: number;
  readonly seconds: number;
}

export const planOf = (seed: number): Plan => drawPlan(new Random(seed), seed);

/** Plays a plan to its end, or until a violation. `trace` receives every event when it happens. */
export async function simulate(plan: Plan, flaws: Flaws = {}, trace?: (line: string) => void): Promise<Report> {
  const random = new Random(plan.seed);
  const world = new World(plan, flaws, trace);
  const { clock, ledger, server } = world;
  const uninstall = install(clock, random.fork('ids'));
  const threw = (error: unknown): void =>
    ledger.violate('the process lives', `${clock.owner}: ${error instanceof Error ? error.stack : String(error)}`);
  process.on('unhandledRejection', threw);
  process.on('uncaughtException', threw);
  try {
    const records = new Records();
    const clients = plan.clients.map((client) => new Client(world, records, client, random.fork('sessions')));
    const last = Math.max(0, ...plan.clients.map(({ at }) => at), ...plan.faults.map(({ at, length }) => at + length));
    const stop = (): boolean => ledger.violation !== undefined;
    await clock.run(last + 1_000, stop, threw);
    const calmSince = clock.now;
    const calm = (): number => clock.now - Math.max(calmSince, world.invariants.lastWrite);
    const isOver = (): boolean => clients.every(({ done }) => done) && world.isSettled() && calm() > overTime;
    while (!stop() && calm() < calmTime && !isOver()) await clock.run(clock.now + 1_000, stop, threw);
    if (!stop()) finish(world, plan, records, clients);
    const { violation } = ledger;
    const lines = violation === undefined ? [] : ledger.lines();
    return {
      plan,
      violation,
      lines,
      steps: clock.steps,
      events: ledger.hash,
      runs: server.logs.size,
      seconds: clock.now / 1_000,
    };
  } finally {
    process.off('unhandledRejection', threw);
    process.off('uncaughtException', threw);
    uninstall();
  }
}

function finish(world: World, plan: Plan, records: Records, clients: readonly Client[]): void {
  const { ledger, server } = world;
  const parked = new Set<string>();
  for (const row of openRuns(world, new Date().toISOString())) {
    const { run_id, status, queued_at, epoch } = row;
    // An agent that says how long its history is cannot repeat that once a turn of it is deleted.
    if (row.parked !== null && historyMayChange(world, run_id, plan)) parked.add(run_id);
    else
      ledger.violate(
        'no run is left open',
        `${run_id} is ${status}, epoch ${epoch}${queued_at === null ? '' : ', queued'}`,
      );
  }
  for (const client of clients) {
    for (const { name, run_id, seen, done } of client.readers) {
      const length = server.logs.get(run_id)?.length ?? 0;
      if (!done && !parked.has(run_id))
        ledger.violate('readers see the whole log', `${name} of ${run_id} has ${seen} of ${length} events`);
    }
  }
  for (const what of world.overdue()) ledger.violate('every request is answered', what);
  judge(world, plan, records);
}

/** Shrinks a plan: drops one actor or fault at a time, as long as the same invariant is violated. */
export async function shrink(report: Report, flaws: Flaws = {}, tries = 400): Promise<Report> {
  let best = report;
  let left = tries;
  for (let better = true; better && left > 0; ) {
    better = false;
    for (const plan of smaller(best.plan)) {
      left -= 1;
      if (left < 0) break;
      const next = await simulate(plan, flaws);
      if (next.violation?.invariant !== report.violation?.invariant) continue;
      best = next;
      better = true;
      break;
    }
  }
  return best;
}

/** A failure as readable text. */
export function explain({ plan, violation, lines }: Report): string {
  return [
    `${violation?.invariant} (at ${((violation?.at ?? 0) / 1000).toFixed(3)} s): ${violation?.detail}`,
    '',
    ...planLines(plan),
    '',
    ...lines,
  ].join('\n');
}
