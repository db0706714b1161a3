import { concatMap, map, merge, NEVER, type Observable, Subject } from 'rxjs';
import { expect } from 'vitest';
import {
  type Agent,
  type AgentContext,
  type AgentFunction,
  type AwaitOptions,
  defineAgent,
} from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import type { ServerOptions } from '../../src/index.ts';
import type { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { Hold } from './hold.ts';
import { nodes } from './nodes.ts';
import { ask, eventsOf, type Served } from './serve.ts';
import { turn, turns } from './turn.ts';

/** The status of the answer, and what it says: the run's status, or the reason of the error. */
export async function give(
  { app }: Served,
  run_id: string,
  text: string,
  headers: Record<string, string> = {},
): Promise<[number, string]> {
  const await_resume = { type: 'message', message: { parts: [{ content: text }] } };
  const payload = { mode: 'async', await_resume };
  const response = await app.inject({ method: 'POST', url: `/runs/${run_id}`, payload, headers });
  const body = response.json();
  return [response.statusCode, body.status ?? body.data.reason];
}

export const taken = [202, 'in-progress'];
export const late = [409, 'not_awaiting'];

export async function repliesIn(served: Served, run_id: string): Promise<string[]> {
  const events = await eventsOf(served, run_id);
  return events.flatMap((event) =>
    'run' in event && event.run.await_resume !== undefined ? [textOfMessage(event.run.await_resume.message)] : [],
  );
}

/** The questions that have a reply. */
export async function answered(served: Served, run_id: string): Promise<string[]> {
  let question = '';
  const found: string[] = [];
  for (const event of await eventsOf(served, run_id)) {
    if (!('run' in event)) continue;
    const { await_request, await_resume } = event.run;
    if (await_request !== undefined) question = textOfMessage(await_request.message);
    else if (await_resume !== undefined) found.push(question);
  }
  return found;
}

export const asks = (durable: boolean, run: AgentFunction): Agent =>
  defineAgent({ name: 'asks', description: 'Asks while it works.' }, run, { durable });
export const never = (): Promise<string> => new Promise(() => {});

/** Asks, and emits the reply. */
export const replyTo = (context: AgentContext, question: string, options: AwaitOptions = {}): Observable<string> =>
  context.await(question, options).pipe(map(({ message }) => textOfMessage(message)));

/** Asks twice, and emits the second reply. */
export const asksTwice = (durable: boolean): Agent =>
  asks(durable, (_, context) => context.await('Go on?').pipe(concatMap(() => replyTo(context, 'When?'))));

/** Asks once, says what the test gives it, and stays on its node because of a step. */
export function asksAndTalks(durable: boolean) {
  const said = new Subject<string>();
  const agent = asks(durable, (_, context) =>
    merge(durable ? context.step('work', never) : NEVER, said, replyTo(context, 'Go on?')),
  );
  return { agent, said };
}

export async function awaitingOn(served: Served): Promise<string> {
  const { run_id, status } = await (await served.post('/runs', ask('asks'))).json();
  expect(status).toBe('awaiting');
  return run_id;
}

/** Resolves to the id of a run that works, once the store knows that it does. */
export async function workingOn(served: Served, store: MemoryStore): Promise<string> {
  const { run_id } = await (await served.post('/runs', ask('asks', 'hi', { mode: 'async' }))).json();
  while ((await store.run(run_id))?.status !== 'in-progress') await turn();
  await turns(10);
  return run_id;
}

/** Resolves once the store has such a question. */
export async function asked(store: MemoryStore, run_id: string, question: string): Promise<void> {
  for (;;) {
    const lines = (await store.events(run_id, 0, 100)).flatMap((batch) => [...batch.lines]);
    if (lines.some((line) => line.includes(`"${question}"`))) return;
    await turn();
  }
}

/** Makes the next read of a run's row fail. */
export function failOnce(store: MemoryStore): void {
  const { run } = store;
  store.run = async () => {
    store.run = run;
    throw new Error('read ECONNRESET');
  };
}

export const has = (text: string, { journal = [] }: Write): boolean => journal.some((line) => line.includes(text));

/** Holds the commits with such a write, before the store takes them, or before it answers that it has. */
export function holdCommits(
  store: MemoryStore,
  matches: (write: Write) => boolean,
  when: 'before' | 'after' = 'before',
): Hold {
  const hold = new Hold();
  const { commit } = store;
  store.commit = async (writes): Promise<Outcome[]> => {
    const isHeld = writes.some(matches);
    if (isHeld && when === 'before') await hold.come();
    const outcomes = await commit.call(store, writes);
    if (isHeld && when === 'after') await hold.come();
    return outcomes;
  };
  return hold;
}

interface HeldReads {
  /** The method of the store whose answers are held. */
  readonly name: string;
  readonly hold: Hold;
}

/**
 * Two nodes, of which `b` executes the runs, until `takeOver` gives them to a third one, which it returns. `reads.hold`
 * holds what the node `reader` reads.
 */
export async function twoNodes(
  agent: Agent,
  reader: 'a' | 'b' = 'b',
  options: Pick<ServerOptions, 'limits' | 'protocols'> = {},
) {
  const { node, queue, store } = nodes([agent]);
  const reads: { hold: HeldReads | undefined } = { hold: undefined };
  const held = new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        const answer = await Reflect.apply(value, target, args);
        if (name === reads.hold?.name) await reads.hold.hold.come();
        return answer;
      };
    },
  });
  const a = await node('a', { ...options, store: reader === 'a' ? held : store });
  const b = await node('b', { ...options, store: reader === 'b' ? held : store });
  queue.next = 'b';
  const takeOver = async (run_id: string): Promise<Served> => {
    const epoch = (await store.run(run_id))?.epoch;
    queue.next = 'c';
    queue.expireLeases('b');
    const c = await node('c');
    while ((await store.run(run_id))?.epoch === epoch) await turn();
    // Time for the notification, and for what the agent does in its next life.
    await turns(10);
    return c;
  };
  return { a, b, store, reads, takeOver };
}
