import { setTimeout as delay } from 'node:timers/promises';
import { textOf } from '../../src/core/parts.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { AwaitRequest, Run } from '../../src/schema/run.ts';
import { changedEffects, differences, Effects, RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { begin, cast, type Followed, follow, openSession, startEngine } from '../../src/testing/engine.ts';
import { agentsOf, planOf, randomOf, replyTo, volatile } from './plans.ts';
import { Speeds } from './speeds.ts';

/** One life of a run, from its beginning or from what a disk had. */
interface Life extends Followed {
  readonly run_id: string;
  readonly store: RecordingStore;
  /** How many commits the store had when the life began. */
  readonly from: number;
  readonly effects: ReturnType<Effects['takeLife']>;
}

/**
 * Executes a run of a random plan in each way in which a run may live: answered at once; answered after it left memory; and
 * re-entered after its process died, with as many of the run's commits as a disk would have. Returns how these lives differ
 * from the first one. At most `mostCuts` of the commits are the last one of a process.
 */
export async function checkPlan(seed: number, mostCuts = Number.POSITIVE_INFINITY) {
  const random = randomOf(seed);
  const plan = planOf(random);
  const effects = new Effects();
  const speeds = new Speeds(seed);
  const [agent, ...others] = agentsOf(plan, effects, speeds);
  if (agent === undefined) throw new Error('a plan has an agent');
  const agents = cast(agent, { calls: Object.fromEntries(others.map((other) => [other.manifest.name, other])) });
  const history = JSON.stringify(plan).includes('"history"') ? ['one', 'two'].map(messageOf) : [];
  const faults: string[] = [];
  let lives = 0;

  /** Executes the run that the store has, or a new one, to its end. `resting`: it is answered after it left memory. */
  const live = async (store: RecordingStore, limits: Partial<Limits>, found?: string): Promise<Life> => {
    lives += 1;
    speeds.beginLife();
    const engine = await startEngine(agents, store, limits);
    try {
      const session_id = found === undefined ? await openSession(engine, { history }) : '';
      const from = store.commits.length;
      effects.takeLife(() => store.durable);
      const run_id = found ?? (await begin(engine, agent, 'go', session_id));
      const answers = async ({ message, path = '' }: AwaitRequest): Promise<string> => {
        if (limits.passivateAfter !== undefined) await hasLeft(store, run_id);
        return replyTo(path, textOf(message));
      };
      const followed = await follow(engine, run_id, answers);
      return { ...followed, run_id, store, from, effects: effects.takeLife() };
    } finally {
      await engine.stop();
    }
  };
  const compare = (how: string, later: Life, first: Life, kept: number, others: readonly string[] = []): void => {
    for (const fault of [...differences(first, later, kept, endOf), ...others])
      faults.push(`seed ${seed}, ${how}: ${fault}; ${JSON.stringify(plan)}`);
  };
  /** Re-enters the run of an earlier life with the first commits of its store. */
  const again = async (earlier: Life, cut: number, limits: Partial<Limits>): Promise<Life | undefined> => {
    const disk = await earlier.store.after(cut);
    const row = await disk.run(earlier.run_id);
    if (row === undefined) return undefined;
    const life = await live(disk, limits, earlier.run_id);
    compare(`cut off after commit ${cut}`, life, earlier, row.last, [
      ...changedEffects(earlier.effects, life.effects, cut),
      ...storedAgain(disk, cut),
    ]);
    return life;
  };

  const begun = performance.now();
  const first = await live(new RecordingStore(), {});
  // A life that waits for a step which the log does not have would take the ten minutes of the default.
  const limits = { idleTimeout: Math.ceil(1_000 + 2 * (performance.now() - begun)), sweepInterval: 100 };
  const rested = await live(new RecordingStore(), { ...limits, sweepInterval: 1, passivateAfter: 1 });
  compare('answered after it left memory', rested, first, 0);
  const cutsOf = ({ from, store }: Life): number[] => {
    const all = Array.from({ length: Math.max(0, store.commits.length - from - 1) }, (_, index) => from + index + 1);
    while (all.length > mostCuts) all.splice(Math.floor(random() * all.length), 1);
    return all;
  };
  const cuts = cutsOf(first);
  const dyingAgain = cuts[Math.floor(random() * cuts.length)];
  for (const cut of cuts) {
    const second = await again(first, cut, limits);
    if (second !== undefined && cut === dyingAgain)
      for (const later of cutsOf(second)) await again(second, later, limits);
  }
  return { lives, faults };
}

const messageOf = (content: string) => ({ parts: [{ content }] });

/** What each branch of a run has said, and what the run has used. No life promises the order of branches side by side. */
function endOf({ output, usage }: Run): unknown {
  const branches: Record<string, string> = {};
  for (const piece of output.map(textOf).join('').split(';')) {
    if (piece.startsWith(volatile)) continue;
    const [branch = ''] = piece.split('|', 1);
    branches[branch] = `${branches[branch] ?? ''}${piece};`;
  }
  return { branches, usage };
}

/** Waits until the run has left memory. It does not leave while it does something else beside its question. */
async function hasLeft(store: RecordingStore, run_id: string): Promise<void> {
  for (let left = 12; left > 0 && ((await store.run(run_id))?.rests_at ?? null) === null; left -= 1) await delay(1);
}

/** The states of the session that a store got in a life although an earlier one had stored them. */
function storedAgain({ commits }: RecordingStore, cut: number): string[] {
  const statesOf = (some: typeof commits): string[] =>
    some.flat().flatMap(({ state, resources = [] }) => (state === undefined ? [] : resources.map(({ body }) => body)));
  const stored = new Set(statesOf(commits.slice(0, cut)));
  return statesOf(commits.slice(cut)).flatMap((body) => (stored.has(body) ? [`${body} is stored again`] : []));
}
