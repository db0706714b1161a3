import { randomUUID } from 'node:crypto';
import {
  catchError,
  concat,
  defer,
  endWith,
  forkJoin,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  race,
  retry,
  timer,
  toArray,
} from 'rxjs';
import { type Agent, type AgentContext, type AgentOutput, defineAgent } from '../../src/core/agent.ts';
import { AgentError } from '../../src/core/errors.ts';
import { textOf } from '../../src/core/parts.ts';
import type { Effects } from '../../src/testing/cut-everywhere.ts';
import type { Speeds } from './speeds.ts';

/** The actions of a durable agent. Everything that may differ in a replay is in steps. */
export type Plan =
  | { readonly do: Leaf; readonly id: string }
  /** A token after so many microtasks. */
  | { readonly do: 'hops'; readonly id: string; readonly hops: number }
  /** A number of values; passed on after some microtasks. With `continued`, the third function continues them. */
  | {
      readonly do: 'step';
      readonly id: string;
      readonly values: number;
      readonly hops: number;
      readonly continued: boolean;
    }
  | { readonly do: 'race'; readonly id: string; readonly between: 'steps' | 'question and step' | 'question and sleep' }
  /** A step whose work performs a plan. */
  | { readonly do: 'work'; readonly id: string; readonly plan: Plan }
  /** Calls that begin side by side; each agent performs the plan. `awaited`: the answer is used, and not the output. */
  | {
      readonly do: 'calls';
      readonly id: string;
      readonly agents: readonly string[];
      readonly awaited: boolean;
      readonly plan: Plan;
    }
  /** A plan and a step that fails in the first attempts. */
  | { readonly do: 'retry'; readonly id: string; readonly fails: number; readonly plan: Plan }
  | { readonly do: 'concat' | 'merge'; readonly plans: readonly Plan[] };

type Leaf = (typeof anywhere)[number] | (typeof counted)[number] | (typeof slow)[number] | 'await' | 'left' | 'fail';

/** What is told apart by names of its own, so that a branch may do it at any time. */
const anywhere = ['token', 'message', 'generic', 'caught', 'effect', 'usage', 'model'] as const;
/** What an agent counts: the first, the second, and so on. */
const counted = ['state', 'store', 'history', 'sleep', 'plain'] as const;
/** What takes another time in each life. */
const slow = ['wait', 'committed'] as const;

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

/**
 * Where in an agent an action is. Steps of one name, calls of one agent and accesses to the session are counted in the
 * order in which one call of an agent, or the work of one step, begins them. Where branches of it begin them after plain
 * waits, each life has another order, which is the agent's own race: no life can promise the same. So these plans are not
 * made. A branch is `alone`, and may do anything; beside others and `ordered`, without plain waits; or beside others and
 * `free`, with waits, and with names of its own. After a call, which takes another time in each life, an ordered branch is
 * free. An agent that is called, and the work of a step, have counts of their own, and are alone again. What an agent that is
 * `called` emits itself has to keep its order, so its branches neither wait nor call.
 */
interface Place {
  readonly depth: number;
  /** The work of a step cannot ask. */
  readonly asks: boolean;
  readonly called: boolean;
  order: 'alone' | 'ordered' | 'free';
}

/** Most actions of a plan, so that it has not too many commits. */
const mostActions = 9;

/** A random plan; each of its actions has an id of its own. */
export function planOf(random: Random): Plan {
  let count = 0;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const upTo = (most: number): number => 1 + Math.floor(random() * most);

  const sequence = (place: Place, most: number): Plan[] => {
    const plans: Plan[] = [];
    for (let left = upTo(most); left > 0 && count < mostActions; left -= 1) plans.push(action(place));
    return plans;
  };
  const whole = (place: Place, most = 3): Plan => ({ do: 'concat', plans: sequence(place, most) });

  const nested = (place: Place, id: string): Plan => {
    const depth = place.depth - 1;
    const { asks, called, order } = place;
    const mayCall = order === 'alone' || (order === 'ordered' && !called);
    const kinds = ['merge', 'work', mayCall ? 'calls' : 'merge', order === 'ordered' ? 'work' : 'retry'] as const;
    const kind = pick(kinds);
    switch (kind) {
      case 'merge': {
        const inner = order === 'alone' ? pick(['ordered', called ? 'ordered' : 'free'] as const) : order;
        const branches = Array.from({ length: 1 + upTo(2) }, (): Place => ({ depth, asks, called, order: inner }));
        const plans = branches.map((branch) => whole(branch));
        if (order === 'ordered' && branches.some((branch) => branch.order === 'free')) place.order = 'free';
        return { do: kind, plans };
      }
      case 'work':
        return { do: kind, id, plan: whole({ depth, asks: false, called: false, order: 'alone' }) };
      case 'retry':
        return { do: kind, id, fails: upTo(2), plan: whole({ depth, asks, called, order }, 2) };
      case 'calls': {
        const agents = Array.from({ length: upTo(3) }, () => pick(callees));
        const plans = sequence({ depth, asks, called: true, order: 'alone' }, 4);
        if (random() < 0.15) plans.push({ do: 'fail', id });
        if (order === 'ordered') place.order = 'free';
        return { do: kind, id, agents, awaited: !asks || random() < 0.3, plan: { do: 'concat', plans } };
      }
    }
  };

  const action = (place: Place): Plan => {
    count += 1;
    const id = `${count}`;
    if (place.depth > 0 && random() < 0.5) return nested(place, id);
    const kind = pick([
      ...anywhere,
      ...(['step', 'step', 'hops', 'race'] as const),
      ...(place.order === 'free' ? [] : counted),
      ...(place.order === 'ordered' ? [] : slow),
      ...(place.order === 'alone' ? (['left'] as const) : []),
      ...(place.asks ? (['await', 'await', 'await'] as const) : []),
    ]);
    switch (kind) {
      case 'hops':
        return { do: kind, id, hops: upTo(5) };
      case 'step':
        return { do: kind, id, values: upTo(3), hops: upTo(6) - 1, continued: random() < 0.3 };
      case 'race': {
        const questions = [
          'question and step',
          ...(place.order === 'free' ? [] : (['question and sleep'] as const)),
        ] as const;
        return { do: kind, id, between: place.asks ? pick(['steps', ...questions]) : 'steps' };
      }
      default:
        return { do: kind, id };
    }
  };

  const plans = sequence({ depth: 4, asks: true, called: false, order: 'alone' }, 6);
  return { do: 'concat', plans: random() < 0.1 ? [...plans, { do: 'fail', id: 'end' }] : plans };
}

async function hop<T>(value: T, hops: number): Promise<T> {
  for (let done = 0; done < hops; done += 1) await undefined;
  return value;
}

/** What performs a plan: the run's own agent, one that it has called, or a branch of either. */
interface Performer {
  readonly context: AgentContext;
  readonly effects: Effects;
  readonly speeds: Speeds;
  /** Unlike the branch of any other performer of the run. */
  readonly branch: string;
}

function perform(plan: Plan, performer: Performer): Observable<AgentOutput> {
  const { context, effects, speeds, branch } = performer;
  /** Each piece names its branch, so that what came to another branch is seen. */
  const say = (text: string): string => `${branch}|${text};`;
  const each = (plans: readonly Plan[]) => plans.map((one) => defer(() => perform(one, performer)));
  const nothing = <T>(work: () => Promise<T>) => defer(work).pipe(ignoreElements());
  const ask = (question: string) =>
    context.await(question).pipe(
      map(({ message }) => {
        const reply = textOf(message);
        return reply === replyTo(context.path, question) ? 'replied' : `got "${reply}" at ${context.path}`;
      }),
    );
  if (!('id' in plan))
    return plan.do === 'concat'
      ? concat(...each(plan.plans))
      : merge(
          ...plan.plans.map((one, index) => defer(() => perform(one, { ...performer, branch: `${branch}.${index}` }))),
        );
  const { id } = plan;
  const pause = () => speeds.pause(`${branch} ${id}`);
  switch (plan.do) {
    case 'token':
      return of(say(`t${id}`));
    case 'message':
      return of({
        role: 'agent',
        parts: [{ content: say(`m${id}`) }, { content: say(`n${id}`), content_type: 'text/html' }],
      });
    case 'generic':
      return of({ type: 'generic', generic: { id } });
    case 'hops':
      return defer(() => hop(say(`h${id}`), plan.hops));
    case 'wait':
      return nothing(pause);
    case 'committed':
      return nothing(() => context.committed());
    case 'step': {
      const values = (before: number) =>
        concat(
          ...Array.from({ length: plan.values - before }, (_, n) => before + n).map((n) =>
            defer(async () => {
              await pause();
              return `${branch} ${n}`;
            }),
          ),
        );
      return context
        .step(`s${id}`, () => values(0), plan.continued ? (before) => values(before.length) : undefined)
        .pipe(
          mergeMap((value) => (plan.hops === 0 ? of(say(`s${id}=${value}`)) : hop(say(`s${id}=${value}`), plan.hops))),
        );
    }
    case 'await':
      return ask(`Go on with ${id}?`).pipe(map(say));
    case 'state':
      return defer(async () => {
        const state = JSON.stringify(await context.session.state()) ?? 'none';
        return context.step(`e${id}`, async () => effects.add(`${branch} ${id}`, state));
      }).pipe(map(() => say(`g${id}`)));
    case 'store':
      return defer(async () => {
        await context.session.setState({ storedBy: `${branch} ${id}` });
        return say(`c${id}`);
      });
    case 'history':
      return context.session.history.pipe(
        toArray(),
        map((messages) => say(`i${id}=${messages.map((message) => textOf(message)).join()}`)),
      );
    case 'usage':
      return nothing(async () => context.usage({ tokens: Number(id), output_tokens: 1 }));
    case 'sleep':
      return context.sleep(Number(id) % 3).pipe(map(() => say(`z${id}`)));
    case 'plain':
      return defer(async () => textOf([await context.call('plain', say(`p${id}`))]));
    case 'caught':
      return context
        .step(`f${id}`, async () => {
          await pause();
          throw Number(id) % 2 === 0
            ? new AgentError('quota', `used up in ${branch}`, { at: id })
            : new RangeError(`out of range in ${branch}`, { cause: new TypeError('no number') });
        })
        .pipe(
          catchError((error: Error) =>
            of(
              say(`${error} ${error instanceof AgentError} ${error.cause} ${error.stack?.includes(`out of range in`)}`),
            ),
          ),
        );
    case 'race':
      return race(
        plan.between === 'steps'
          ? context.step(`r${id}`, () => timer(1))
          : ask(`Race with ${id}?`).pipe(map((reply) => (reply === 'replied' ? '' : reply))),
        plan.between === 'question and sleep' ? context.sleep(1) : context.step(`r${id}`, () => pause()),
      ).pipe(map((first) => say(typeof first === 'string' ? `r${id}${first}` : `r${id}`)));
    case 'left':
      return race(
        context.call('one', JSON.stringify({ plan: leaving, branch: `${branch}-${id}` })).pipe(toArray()),
        context.step(`l${id}`, pause),
      ).pipe(map(() => say(`l${id}`)));
    case 'effect':
      return context
        .step(`k${id}`, async () => randomUUID())
        .pipe(
          mergeMap((key) =>
            context.step(`e${id}`, async () => {
              effects.add(`${branch} ${id}`, key);
              await pause();
            }),
          ),
          map(() => say(`e${id}`)),
        );
    case 'model':
      // It says other things in each life, also in one that does it again.
      return context
        .step(`m${id}`, () =>
          concat(
            ...Array.from({ length: 2 }, () =>
              defer(async () => {
                await pause();
                return `${volatile}${randomUUID()};`;
              }),
            ),
          ),
        )
        .pipe(endWith(say(`m${id}`)));
    case 'work':
      return context
        .step(`w${id}`, () =>
          concat(
            nothing(pause),
            defer(() => perform(plan.plan, performer)),
          ).pipe(toArray()),
        )
        .pipe(mergeMap((outputs) => outputs));
    case 'calls': {
      const outputs = plan.agents.map((agent, index): Observable<AgentOutput> => {
        const called = context.call(agent, JSON.stringify({ plan: plan.plan, branch: `${branch}-${id}.${index}` }));
        const output: Observable<AgentOutput> = plan.awaited
          ? defer(async () => byBranch(textOf([await called])))
          : called;
        return output.pipe(catchError(({ message }: Error) => of(`${branch}-${id}.${index}|failed: ${message};`)));
      });
      return plan.awaited ? forkJoin(outputs).pipe(mergeMap((answers) => answers)) : merge(...outputs);
    }
    case 'retry': {
      let attempts = 0;
      return defer(() => {
        attempts += 1;
        const attempt = attempts;
        return concat(
          perform(plan.plan, { ...performer, branch: `${branch}!${attempt}` }),
          context
            .step(`y${id}`, async () => {
              await pause();
              if (attempt <= plan.fails) throw new Error(`attempt ${attempt}`);
              return attempt;
            })
            .pipe(map((n) => say(`y${id}=${n}`))),
        );
      }).pipe(retry(2));
    }
    case 'fail':
      return context.step('fail', async () => {
        throw new AgentError('planned', `as planned in ${branch}`);
      });
  }
}

/** The same pieces for each order of branches. The agent that awaits the answer of another one does not get it from a journal. */
const byBranch = (pieces: string): string =>
  pieces
    .split(/(?<=;)/)
    .map((piece) => ({ piece, branch: piece.split('|', 1).join() }))
    .sort((one, other) => (one.branch < other.branch ? -1 : Number(one.branch > other.branch)))
    .map(({ piece }) => piece)
    .join('');

/** A reply that shows which question it answers. */
export const replyTo = (path: string, question: string): string => `yes to "${question}" at ${path}`;

/** Begins a text that is not the same in all lives. */
export const volatile = '~';

/** What an agent does that is called beside a step, and left where the step is faster. */
const leaving: Plan = {
  do: 'concat',
  plans: [
    { do: 'wait', id: '1' },
    { do: 'effect', id: '2' },
    { do: 'store', id: '3' },
  ],
};

const callees = ['one', 'two'] as const;

/** The agents that perform a plan. The first one performs it, and calls the others. */
export function agentsOf(plan: Plan, effects: Effects, speeds: Speeds): Agent[] {
  const durable = { durable: true };
  return [
    defineAgent(
      { name: 'random', description: 'Random.' },
      (_, context) => perform(plan, { context, effects, speeds, branch: 'r' }),
      durable,
    ),
    ...callees.map((name) =>
      defineAgent(
        { name, description: 'Called.' },
        (input, context) => {
          const called: { plan: Plan; branch: string } = JSON.parse(textOf(input));
          return concat(
            defer(() => speeds.pause(called.branch)).pipe(ignoreElements()),
            perform(called.plan, { context, effects, speeds, branch: called.branch }),
          );
        },
        durable,
      ),
    ),
    defineAgent({ name: 'plain', description: 'Not durable.' }, async (input, context) => {
      await speeds.pause(textOf(input));
      context.usage({ tokens: 3 });
      return textOf(input);
    }),
  ];
}
