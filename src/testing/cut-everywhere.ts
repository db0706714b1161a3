import { isDeepStrictEqual } from 'node:util';
import type { Input } from '../client/input.ts';
import type { Agent } from '../core/agent.ts';
import { fold } from '../core/fold.ts';
import type { Outcome, Write } from '../core/ports/run-store.ts';
import type { Event } from '../schema/event.ts';
import type { MessagePart } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import { MemoryStore } from '../stores/memory/memory-store.ts';
import { begin, cast, type Followed, follow, keepAlive, openSession, type Scene, startEngine } from './engine.ts';

/** A store that remembers its commits, so that a test can go back to any moment at which a process might have died. */
export class RecordingStore extends MemoryStore {
  readonly commits: Write[][] = [];
  /** The commits that their caller knows to be durable. */
  durable = 0;

  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    this.commits.push(structuredClone([...writes]));
    return this.#keep(writes);
  }

  async #keep(writes: readonly Write[]): Promise<Outcome[]> {
    const outcomes = await super.commit(writes);
    this.durable += 1;
    return outcomes;
  }

  /** What a disk would hold after the first `count` commits. */
  async after(count: number): Promise<RecordingStore> {
    const store = new RecordingStore();
    // The commits themselves, which no store changes. Copies of all for each cut would take quadratic time.
    store.commits.push(...this.commits.slice(0, count));
    for (const writes of [...store.commits]) await store.#keep(writes);
    return store;
  }
}

export interface CutOptions extends Scene {
  /** What has to be the same of all ends. Default: the output's roles and parts. Branches side by side may need another. */
  readonly endOf?: (run: Run) => unknown;
  /** What the agent does outside of the run. An effect that is repeated has to use the same values. */
  readonly effects?: Effects;
}

export interface Cuts {
  readonly run: Run;
  /** How many times the run was cut off. */
  readonly cuts: number;
  /** What differed from the run that was not cut off. */
  readonly faults: string[];
}

const saidIn = ({ output }: Run): unknown =>
  output.map(({ role, parts }) => ({ role, parts: parts.map(withoutTimes) }));

/** A life that calls a tool again has other times of that call. */
function withoutTimes(part: MessagePart): MessagePart {
  if (part.metadata?.kind !== 'trajectory') return part;
  const { started_at: _, ended_at: __, ...metadata } = part.metadata;
  return { ...part, metadata };
}

/**
 * Runs a durable agent once, and then again from what a disk would hold after each of its commits, as after a crash.
 * @throws Error that lists the ends that differ from the first, and the events that were lost or changed
 */
export async function cutEverywhere(agent: Agent, input: Input, options: CutOptions = {}): Promise<Cuts> {
  const { name } = agent.manifest;
  if (agent.options.durable !== true) throw new Error(`agent ${name} is not durable: define it with { durable: true }`);
  const result = await keepAlive(() => cutAll(agent, input, options));
  if (result.faults.length > 0) throw new Error(`agent ${name} ends otherwise:\n${result.faults.join('\n')}`);
  return result;
}

/** As `cutEverywhere`, for callers that count the faults. */
export async function cutAll(agent: Agent, input: Input, options: CutOptions = {}): Promise<Cuts> {
  const { answers, limits, endOf = saidIn, effects = new Effects() } = options;
  const agents = cast(agent, options);
  const store = new RecordingStore();
  const engine = await startEngine(agents, store, limits);
  const session_id = await openSession(engine, options);
  const before = store.commits.length;
  effects.takeLife(() => store.durable - before);
  const begun = performance.now();
  const run_id = await begin(engine, agent, input, session_id, options);
  const first = await follow(engine, run_id, answers).finally(() => engine.stop());
  const done = effects.takeLife();
  // A life that waits for a step which the log does not have would take the ten minutes of the default.
  const idleTimeout = Math.ceil(1_000 + 2 * (performance.now() - begun));
  const faults: string[] = [];
  const cuts = store.commits.length - before - 1;
  for (let cut = 1; cut <= cuts; cut += 1) {
    const disk = await store.after(before + cut);
    const row = await disk.run(run_id);
    if (row === undefined) continue;
    const again = await startEngine(agents, disk, { idleTimeout, sweepInterval: 100, ...limits });
    const life = await follow(again, run_id, answers).finally(() => again.stop());
    const found = [...differences(first, life, row.last, endOf), ...changedEffects(done, effects.takeLife(), cut)];
    faults.push(...found.map((what) => `cut off after commit ${cut}: ${what}`));
  }
  return { run: first.run, cuts, faults };
}

/** How a later life of a run differs from its first one. `kept`: the events that the later life found in the store. */
export function* differences(
  first: Followed,
  { run, events }: Followed,
  kept: number,
  endOf: (run: Run) => unknown,
): Generator<string, void> {
  if (run.parked !== undefined) {
    yield `it is parked: ${run.parked.reason}`;
    return;
  }
  const [end, expected] = [endOf(run), endOf(first.run)];
  if (run.status !== first.run.status || !isDeepStrictEqual(run.error, first.run.error))
    yield `${run.status} ${JSON.stringify(run.error)}, not ${first.run.status} ${JSON.stringify(first.run.error)}`;
  else if (!isDeepStrictEqual(end, expected)) yield `${JSON.stringify(end)}, not ${JSON.stringify(expected)}`;
  if (!isDeepStrictEqual(events.slice(0, kept), first.events.slice(0, kept))) yield 'events were lost or changed';
  if (!isDeepStrictEqual(folded(events), run)) yield 'the log does not fold into the run';
}

const folded = (events: readonly Event[]): Run | undefined =>
  structuredClone([...events]).reduce<Run | undefined>(
    (run, event) => (run === undefined ? ('run' in event ? event.run : undefined) : fold(run, event)),
    undefined,
  );

interface Effect {
  readonly name: string;
  readonly values: readonly unknown[];
  /** How many commits were durable when it began. */
  readonly commits: number;
}

/** What an agent under test does outside of its run: its fakes of a payment or a mail call `add`. */
export class Effects {
  #done: Effect[] = [];
  #commits = (): number => 0;

  /** An effect begins. `name` is unique within the run; `values` are those that the effect uses, such as a key. */
  add(name: string, ...values: readonly unknown[]): void {
    this.#done.push({ name, values: structuredClone([...values]), commits: this.#commits() });
  }

  /** Takes the effects of one life. `commits` counts the durable commits of the next one. */
  takeLife(commits: () => number = () => 0): Effect[] {
    const done = this.#done;
    this.#done = [];
    this.#commits = commits;
    return done;
  }
}

/** The effects that a life repeats with other values. Those that began later than the cut have not begun at all. */
export function changedEffects(first: readonly Effect[], life: readonly Effect[], cut: number): string[] {
  const begun = new Map(first.filter(({ commits }) => commits <= cut).map((effect) => [effect.name, effect.values]));
  return life.flatMap(({ name, values }) => {
    const before = begun.get(name);
    if (before === undefined || isDeepStrictEqual(before, values)) return [];
    return [`effect ${name} is repeated with ${JSON.stringify(values)}, not ${JSON.stringify(before)}`];
  });
}
