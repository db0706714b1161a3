import type { Agent } from '../../src/core/agent.ts';
import { RivuletError } from '../../src/core/errors.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Run } from '../../src/schema/run.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { closeWhenParked, startEngine } from '../../src/testing/engine.ts';
import { turn } from './turn.ts';

/** A final run, as a client sees it. */
export interface Ended {
  readonly run: Run;
  readonly events: Event[];
}

export const begin = async (engine: Engine, agent_name: string, text = 'go'): Promise<string> =>
  (await engine.create({ agent_name, input: [{ parts: [{ content: text }] }] })).run_id;

/** Begins a run, and waits until it has this status. */
export async function begun(engine: Engine, agent_name: string, status: Run['status'] = 'awaiting'): Promise<string> {
  const run_id = await begin(engine, agent_name);
  while ((await runOf(engine, run_id)).status !== status) await turn();
  return run_id;
}

/** The status with which a request was answered, or the kind of its error. */
export async function answerOf(request: Promise<string>): Promise<string> {
  try {
    return JSON.parse(await request).status;
  } catch (error) {
    if (error instanceof RivuletError) return error.kind;
    throw error;
  }
}

export const runOf = async (engine: Engine, run_id: string): Promise<Run> => JSON.parse(await engine.run(run_id));

export async function eventsOf(engine: Engine, run_id: string): Promise<Event[]> {
  const events: Event[] = [];
  for await (const { lines } of await engine.openCursor(run_id, { until: 'now' }))
    for (const line of lines) events.push(JSON.parse(line));
  return events;
}

/** Waits until the run is final or parked; `answer` replies to its questions. */
export async function toTheEnd(engine: Engine, run_id: string, answer?: (question: string) => string): Promise<Ended> {
  const cursor = await engine.openCursor(run_id);
  const unobserve = await closeWhenParked(engine, cursor);
  for await (const { lines } of cursor) {
    const turned = lines.map((line): Event => JSON.parse(line)).filter((event) => 'run' in event);
    const asked = turned.at(-1)?.run.await_request;
    if (asked === undefined || answer === undefined) continue;
    const content = answer(asked.message.parts[0]?.content ?? '');
    const reply = { type: 'message', message: { parts: [{ content }] }, ...(asked.id && { id: asked.id }) };
    // A run that was cut off may have got this reply before.
    engine.resume(run_id, reply).catch(() => undefined);
  }
  unobserve();
  return { run: await runOf(engine, run_id), events: await eventsOf(engine, run_id) };
}

/** Executes a run once, to its end. */
export async function whole(
  agents: Agent[],
  answer?: (question: string) => string,
  limits?: Partial<Limits>,
  store = new RecordingStore(),
): Promise<Ended & { store: RecordingStore }> {
  const engine = await startEngine(agents, store, limits);
  const [agent] = agents;
  const ended = await toTheEnd(engine, await begin(engine, agent?.manifest.name ?? ''), answer);
  await engine.stop();
  return { ...ended, store };
}

/** Re-enters a run with its first commits, as a disk would have them; undefined without a commit. */
export async function again(
  agents: Agent[],
  store: RecordingStore,
  commits: number,
  answer?: (question: string) => string,
  limits?: Partial<Limits>,
): Promise<(Ended & { kept: number }) | undefined> {
  const disk = await store.after(commits);
  const [row] = await disk.runs({}, undefined, 1);
  if (row === undefined) return undefined;
  const engine = await startEngine(agents, disk, limits);
  const ended = await toTheEnd(engine, row.run_id, answer);
  await engine.stop();
  return { ...ended, kept: row.last };
}

/** Waits until a run that awaits has left memory. Its engine needs a short `passivateAfter`. */
export async function atRest(store: Store, run_id: string): Promise<void> {
  while (((await store.run(run_id))?.rests_at ?? null) === null) await turn();
}
