import { MessageChannel } from 'node:worker_threads';
import { type Input, type Reply, toMessages, toReply } from '../client/input.ts';
import { type Agent, type AgentFunction, type AgentLog, defineAgent, silentLog } from '../core/agent.ts';
import { RivuletError } from '../core/errors.ts';
import { cut } from '../core/json.ts';
import { questionText } from '../core/parts.ts';
import type { Store } from '../core/ports/store.ts';
import type { AgentRequest } from '../core/request.ts';
import { Registry } from '../engine/agents/registry.ts';
import { Engine } from '../engine/engine.ts';
import { newId } from '../engine/ids.ts';
import type { Limits } from '../engine/limits.ts';
import type { Event } from '../schema/event.ts';
import type { Message, MessageInput } from '../schema/message.ts';
import type { AwaitRequest, Run } from '../schema/run.ts';

/** What an agent meets in a test. */
export interface Scene {
  readonly answers?: Answers;
  /** Messages that the session has before the run. */
  readonly history?: readonly (Message | MessageInput)[];
  /** The session's state before the run. */
  readonly state?: unknown;
  /** What the agent sees as `context.request`. Default: a request to this server's own API. */
  readonly request?: AgentRequest;
  /** The agents that this one may call, by name: agents, their functions, or the text that each answers with. */
  readonly calls?: Readonly<Record<string, Agent | AgentFunction | string>>;
  readonly limits?: Partial<Limits>;
}

export interface EngineTools {
  /** Gets the lines of all runs. Default: they are dropped. */
  readonly log?: AgentLog;
  /** Milliseconds since 1970, for the times of events and messages. Default `Date.now`. */
  readonly clock?: () => number;
  /** Gets what failed in the engine's periodic work. Default: it is thrown. */
  readonly onFailure?: (error: unknown) => void;
}

const raise = (error: unknown): never => {
  throw error;
};

/**
 * Replies to the questions of a run. A list has one reply for each question, in order. At a question after the end of the list,
 * the run is left `awaiting`. A function that returns undefined leaves the question open, so that the agent may give up on it.
 */
export type Answers = readonly Reply[] | ((question: AwaitRequest) => Reply | undefined | Promise<Reply | undefined>);

/** A run, as far as it was followed. */
export interface Followed {
  readonly run: Run;
  readonly events: Event[];
  readonly questions: AwaitRequest[];
}

/** An engine without a server, which is not started. The caller stops it. */
export function createEngine(
  agents: readonly Agent[],
  store: Store,
  limits: Partial<Limits> = {},
  { log = silentLog, clock, onFailure = raise }: EngineTools = {},
): Engine {
  const engine = new Engine({
    registry: new Registry(agents.map((agent) => ({ agent, source: 'the test' }))),
    store,
    fetchResource: () => Promise.reject(new Error('a test reads no sessions of other servers')),
    publicUrl: () => 'http://localhost',
    logFor: () => log,
    onFailure,
    // A replay on a busy machine may take longer than a client would wait.
    limits: { shutdownGrace: 0, attempts: 0, requestTimeout: 600_000, ...limits },
    ...(clock && { clock }),
  });
  engine.on('runEnded', ({ row, failure }) => {
    if (failure !== undefined) log.warn(`agent ${row.agent_name}, run ${row.run_id} failed: ${failure}`);
  });
  engine.on('runParked', ({ agent_name, run_id, parked }) =>
    log.warn(`agent ${agent_name}, run ${run_id} parked: ${parked}`),
  );
  return engine;
}

/** The same, started. */
export async function startEngine(...of: Parameters<typeof createEngine>): Promise<Engine> {
  const engine = createEngine(...of);
  await engine.start();
  return engine;
}

const earlier = 'rivulet-test-session';

/** The agent of a test, the agents that it may call, and one that fills the session: its input is the history. */
export const cast = (agent: Agent, { calls = {}, state }: Scene): Agent[] => [
  agent,
  defineAgent({ name: earlier, description: 'Fills a session.' }, async (_, { session }) => {
    if (state !== undefined) await session.setState(state);
    return [];
  }),
  ...Object.entries(calls).map(([name, called]) =>
    typeof called === 'object'
      ? defineAgent({ ...called.manifest, name }, called.run, called.options)
      : defineAgent(
          { name, description: 'Stands in for another.' },
          typeof called === 'string' ? () => called : called,
        ),
  ),
];

/** Makes the session with its history and state. Answers its id. */
export async function openSession(engine: Engine, { history = [], state }: Scene): Promise<string> {
  const session_id = newId();
  if (history.length === 0 && state === undefined) return session_id;
  // A message of a run that failed may not be complete.
  const input = history.map(({ completed_at, ...rest }) => ({ ...rest, ...(completed_at && { completed_at }) }));
  await follow(engine, (await engine.create({ agent_name: earlier, session_id, input })).run_id);
  return session_id;
}

/** The state that the session has now. */
export async function stateOf(store: Store, session_id: string): Promise<unknown> {
  const { state } = (await store.session(session_id)) ?? {};
  const [kept] = state ? await store.resources([state.slice(state.lastIndexOf('/') + 1)]) : [];
  return kept && JSON.parse(kept.body);
}

export async function begin(
  engine: Engine,
  agent: Agent,
  input: Input,
  session_id: string,
  { request }: Scene = {},
): Promise<string> {
  const created = { agent_name: agent.manifest.name, session_id, input: toMessages(input) };
  const { run_id } = await engine.create(created, request && { request });
  return run_id;
}

/** Closes a cursor once its run is parked: nothing follows by itself. Returns a function that stops to watch. */
export async function closeWhenParked(
  engine: Engine,
  cursor: { readonly run_id: string; close(): void },
): Promise<() => void> {
  const unobserve = engine.on('runParked', ({ run_id }) => run_id === cursor.run_id && cursor.close());
  // It may have been parked before.
  const run: Run = JSON.parse(await engine.run(cursor.run_id));
  if (run.parked !== undefined) cursor.close();
  return unobserve;
}

/** Reads a run to its end, until it is parked, or to the question that a list of answers has no reply to. */
export async function follow(engine: Engine, run_id: string, answers: Answers = []): Promise<Followed> {
  const events: Event[] = [];
  const questions: AwaitRequest[] = [];
  const cursor = await engine.openCursor(run_id);
  const unobserve = await closeWhenParked(engine, cursor);
  let failed: { readonly error: unknown } | undefined;
  // Nothing waits for a function: the run may end, or be cancelled, without its reply.
  const replyOf = async (answer: Exclude<Answers, readonly Reply[]>, asked: AwaitRequest): Promise<void> => {
    try {
      const reply = await answer(asked);
      if (reply !== undefined) await resume(engine, run_id, asked, reply);
    } catch (error) {
      failed ??= { error };
      cursor.close();
    }
  };
  for await (const { lines } of cursor) {
    const batch = lines.map((line): Event => JSON.parse(line));
    events.push(...batch);
    const turns = batch.filter((event) => 'run' in event);
    for (const { run } of turns) if (run.await_request !== undefined) questions.push(run.await_request);
    // Only the last one: what comes after a question shows that it is not open any more.
    const asked = turns.at(-1)?.run.await_request;
    if (asked === undefined) continue;
    if (typeof answers === 'function') {
      void replyOf(answers, asked);
      continue;
    }
    const reply = answers[questions.length - 1];
    if (reply === undefined) break;
    await resume(engine, run_id, asked, reply);
  }
  unobserve();
  if (failed !== undefined) throw failed.error;
  return { run: JSON.parse(await engine.run(run_id)), events, questions };
}

/** @throws RivuletError that names the question where the reply does not fit it */
async function resume(engine: Engine, run_id: string, asked: AwaitRequest, reply: Reply): Promise<void> {
  const { id } = asked;
  try {
    await engine.resume(run_id, { type: 'message', message: toReply(reply), ...(id !== undefined && { id }) });
  } catch (error) {
    // A run that was cut off may have got this reply before, and an agent may have given up on the question.
    if (!(error instanceof RivuletError)) throw error;
    if (['not_awaiting', 'question_mismatch'].includes(error.kind)) return;
    const text = `The reply to the question "${cut(questionText(asked), 200)}" is refused: ${error.message}`;
    throw new RivuletError(error.kind, text, { cause: error });
  }
}

/**
 * Does the work of a test, and keeps the process alive until it has settled. All timers of an engine are unref'd, so a
 * process that waits for nothing but a time-out would end, and `node --test` would report the test as cancelled. An open
 * port keeps the process alive as a timer would, and no test fakes it.
 */
export async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const { port1, port2 } = new MessageChannel();
  port1.on('message', () => undefined);
  try {
    return await work();
  } finally {
    port1.close();
    port2.close();
  }
}
