import { randomUUID } from 'node:crypto';
import { setImmediate as immediate } from 'node:timers/promises';
import { catchError, concat, defer, EMPTY, from, map, merge, mergeMap, type Observable, of, race, timer } from 'rxjs';
import { type Agent, type AgentContext, type AgentOutput, defineAgent } from '../../src/core/agent.ts';
import { AgentError } from '../../src/core/errors.ts';
import type { Effects } from '../../src/testing/effects.ts';

/** The actions of a durable agent. Everything that may differ in a replay is in steps. */
export type Plan =
  | {
      readonly do: 'token' | 'message' | 'generic' | 'await' | 'state' | 'caught' | 'race' | 'effect';
      readonly id: string;
    }
  /** A token after so many microtasks. */
  | { readonly do: 'hops'; readonly id: string; readonly hops: number }
  /**
   * A number of values, each after a turn of the event loop, a millisecond or at once; passed on after some microtasks.
   */
  | { readonly do: 'step'; readonly id: string; readonly values: number; readonly pause: Pause; readonly hops: number }
  | { readonly do: 'concat' | 'merge'; readonly plans: readonly Plan[] }
  | { readonly do: 'call'; readonly plan: Plan }
  | { readonly do: 'fail'; readonly id: string };
type Pause = 'none' | 'turn' | 'timer';

export type Random = () => number;

/** Mulberry32: the same numbers for the same seed. */
export function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const leaves = [
  ...(['token', 'message', 'generic', 'await', 'state', 'caught', 'race', 'effect', 'hops', 'step', 'step'] as const),
];

/** A random plan; each of its pieces has an id of its own. */
export function planOf(random: Random): Plan {
  let count = 0;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const some = (depth: number): Plan[] => Array.from({ length: 1 + Math.floor(random() * 3) }, () => make(depth - 1));
  const make = (depth: number): Plan => {
    if (depth > 0 && random() < 0.45) {
      const what = pick(['concat', 'merge', 'merge', 'call'] as const);
      return what === 'call' ? { do: what, plan: make(depth - 1) } : { do: what, plans: some(depth) };
    }
    count += 1;
    const id = `${count}`;
    const what = pick(leaves);
    const hops = Math.floor(random() * 6);
    if (what === 'hops') return { do: what, id, hops };
    if (what !== 'step') return { do: what, id };
    return { do: what, id, hops, values: 1 + Math.floor(random() * 3), pause: pick(['none', 'turn', 'timer']) };
  };
  const plans = [...some(3), ...some(3)];
  return { do: 'concat', plans: random() < 0.1 ? [...plans, { do: 'fail', id: 'end' }] : plans };
}

async function hop<T>(value: T, hops: number): Promise<T> {
  for (let done = 0; done < hops; done += 1) await undefined;
  return value;
}

const paused = (value: number, pause: Pause): Observable<number> => {
  if (pause === 'none') return of(value);
  return pause === 'turn' ? from(immediate(value)) : timer(1).pipe(map(() => value));
};

function perform(plan: Plan, context: AgentContext, effects: Effects): Observable<AgentOutput> {
  switch (plan.do) {
    case 'token':
      return of(`t${plan.id};`);
    case 'message':
      return of({
        role: 'agent',
        parts: [{ content: `m${plan.id};` }, { content: `n${plan.id};`, content_type: 'text/html' }],
      });
    case 'generic':
      return of({ type: 'generic', generic: { id: plan.id } });
    case 'hops':
      return defer(() => hop(`h${plan.id};`, plan.hops));
    case 'step':
      return context
        .step(`s${plan.id}`, () => concat(...Array.from({ length: plan.values }, (_, n) => paused(n, plan.pause))))
        .pipe(mergeMap((n) => (plan.hops === 0 ? of(`s${plan.id}.${n};`) : hop(`s${plan.id}.${n};`, plan.hops))));
    case 'await':
      return context.await(`?${plan.id}`).pipe(map(({ message }) => `a${plan.id}=${message.parts[0]?.content};`));
    case 'state':
      return defer(async () => {
        await context.session.setState({ id: plan.id });
        return `c${plan.id};`;
      });
    case 'caught':
      return context
        .step(`f${plan.id}`, async () => {
          throw new AgentError('quota', `used up ${plan.id}`, { at: plan.id });
        })
        .pipe(
          catchError((error: unknown) => of(`${String(error)} ${error instanceof AgentError ? error.code : '?'};`)),
        );
    case 'race':
      return race(
        context.step(`r${plan.id}`, () => timer(1).pipe(map(() => 'left'))),
        context.step(`r${plan.id}`, () => from(immediate('right'))),
      ).pipe(map(() => `r${plan.id};`));
    case 'effect':
      return context
        .step(`k${plan.id}`, async () => randomUUID())
        .pipe(
          mergeMap((key) => context.step(`e${plan.id}`, async () => effects.add(plan.id, key))),
          map(() => `e${plan.id};`),
        );
    case 'concat':
      return concat(...plan.plans.map((one) => defer(() => perform(one, context, effects))));
    case 'merge':
      return merge(...plan.plans.map((one) => defer(() => perform(one, context, effects))));
    case 'call':
      return context.call('callee', JSON.stringify(plan.plan));
    case 'fail':
      return context.step('fail', async () => {
        throw new AgentError('planned', 'as planned');
      });
  }
}

/** The agents that perform a plan; the first one calls the second one. */
export const agentsOf = (plan: Plan, effects: Effects): Agent[] => [
  defineAgent({ name: 'random', description: 'Random.' }, (_, context) => perform(plan, context, effects), {
    durable: true,
  }),
  defineAgent(
    { name: 'callee', description: 'Called.' },
    ([message], context) => {
      const content = message?.parts[0]?.content;
      return content === undefined ? EMPTY : perform(JSON.parse(content), context, effects);
    },
    { durable: true },
  ),
];
