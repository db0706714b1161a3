import { Client } from './clients.ts';
import { install } from './globals.ts';
import type { Violation } from './ledger.ts';
import { drawPlan, type Plan, planLines, smaller } from './plan.ts';
import { Random } from './random.ts';
import { Records } from './records.ts';
import { judge, openRuns } from './verdicts.ts';
import { type Flaws, World } from './world.ts';

/** Virtual milliseconds, with no fault in force, after which a store that nothing was written to is at rest: every limit has passed. */
const calmTime = 70_000;

/** Virtual milliseconds for which all that is over has to stay so. */
const overTime = 12_000;

/** What became of a simulation. */
export interface Report {
  readonly plan: Plan;
  readonly violation: Violation | undefined;
  /** The last events of each actor. */
  readonly lines: readonly string[];
  readonly steps: number;
  /** Of everything that was told; the same plan has the same. */
  readonly told: number;
  readonly runs: number;
  readonly seconds: number;
}

export const planOf = (seed: number): Plan => drawPlan(new Random(seed), seed);

/** Plays a plan to its end, or until an invariant is broken. `trace` is told of every event when it happens. */
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
      told: ledger.count,
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
  for (const { run_id, status, queued_at, epoch } of openRuns(world, new Date().toISOString()))
    ledger.violate(
      'no run is left open',
      `${run_id} is ${status}, epoch ${epoch}${queued_at === null ? '' : ', queued'}`,
    );
  for (const client of clients) {
    for (const { name, run_id, seen, done } of client.readers) {
      const length = server.logs.get(run_id)?.length ?? 0;
      if (!done) ledger.violate('readers see the whole log', `${name} of ${run_id} has ${seen} of ${length} events`);
    }
  }
  for (const what of world.overdue()) ledger.violate('every request is answered', what);
  judge(world, plan, records);
}

/** Leaves out what a failure does not need, one thing at a time, as long as the same invariant is broken. */
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

/** A failure, so that it can be read. */
export function explain({ plan, violation, lines }: Report): string {
  return [
    `${violation?.invariant} (at ${((violation?.at ?? 0) / 1000).toFixed(3)} s): ${violation?.detail}`,
    '',
    ...planLines(plan),
    '',
    ...lines,
  ].join('\n');
}
