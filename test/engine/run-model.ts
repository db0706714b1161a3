import fc from 'fast-check';
import { concat, defer, map, type Observable, of, throwError, timer } from 'rxjs';
import { expect } from 'vitest';
import {
  type AgentContext,
  type AgentOutput,
  canBecome,
  createServer,
  type Event,
  fold,
  isFinal,
  type Run,
} from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { withoutInput } from '../support/details.ts';
import { apiOnly, parseFrames } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

/** The actions of a random agent. */
type Step =
  | { do: 'token' | 'part' | 'message' | 'generic'; text: string }
  | { do: 'wait' | 'await' | 'fail' | 'throw' | 'nonsense' | 'complete' };

/** The requests of clients meanwhile. */
type Action = { do: 'resume' | 'cancel' | 'read' | 'drop' | 'get' | 'turn' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('token', 'part', 'message', 'generic'),
      text: fc.string({ maxLength: 8 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('wait', 'await') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('fail', 'throw', 'nonsense', 'complete') }) },
) as fc.Arbitrary<Step>;
const action: fc.Arbitrary<Action> = fc.record({
  do: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('resume', 'turn', 'read', 'drop', 'get') },
    { weight: 1, arbitrary: fc.constant('cancel') },
  ),
}) as fc.Arbitrary<Action>;

function perform(one: Step, context: AgentContext): Observable<AgentOutput> {
  switch (one.do) {
    case 'token':
      return of(one.text);
    case 'part':
      return of({ content: one.text, content_type: 'text/html' });
    case 'message':
      return of({ role: 'agent', parts: [{ content: one.text }, { content: one.text }] });
    case 'generic':
      return of({ type: 'generic', generic: { text: one.text } });
    case 'wait':
      return timer(0).pipe(map(() => 'waited'));
    case 'await':
      return context.await('?').pipe(map(() => 'answered'));
    case 'fail':
      return throwError(() => new Error('failed'));
    case 'throw':
      return defer(() => {
        throw new Error('threw');
      });
    case 'nonsense':
      return of<AgentOutput>(42 as never);
    case 'complete':
      return of();
  }
}

/** The transitions in the log, with `cancelling` added, which has no event. */
function transitionsOf(events: Event[]): [Run['status'], Run['status']][] {
  const statuses = events.flatMap((event) => ('run' in event ? [event.run.status] : []));
  const filled = statuses.flatMap((status) => (status === 'cancelled' ? (['cancelling', status] as const) : [status]));
  return filled.slice(1).map((to, index) => [filled[index] ?? 'created', to]);
}

async function playOut(steps: Step[], actions: Action[], store: string): Promise<void> {
  const random = agent('random', (_, context) => concat(...steps.map((one) => perform(one, context))));
  const app = await createServer({
    agents: [random],
    store,
    ...apiOnly,
    limits: { cancelGrace: 5 },
  });
  const get = (url: string, headers = {}) => app.inject({ url, headers });
  const post = (url: string, payload?: object) => app.inject({ method: 'POST', url, ...(payload && { payload }) });
  try {
    const created = await post('/runs', { agent_name: 'random', mode: 'async', input: [{ parts: [] }] });
    const { run_id } = created.json();
    const path = `/runs/${run_id}`;
    const tail = () => get(`${path}/events`, { accept: 'text/event-stream' });
    const tails = [tail()];
    const resume = { mode: 'async', await_resume: { type: 'message', message: { parts: [] } } };
    for (const one of actions) {
      if (one.do === 'resume') expect([202, 409]).toContain((await post(path, resume)).statusCode);
      if (one.do === 'cancel') expect([202, 409]).toContain((await post(`${path}/cancel`)).statusCode);
      if (one.do === 'get') expect((await get(path)).statusCode).toBe(200);
      if (one.do === 'read') tails.push(tail());
      if (one.do === 'drop')
        app
          .inject({ url: `${path}/events`, headers: { accept: 'text/event-stream' }, signal: AbortSignal.abort() })
          .catch(() => {});
      if (one.do === 'turn') await turn();
    }
    // Replies to questions until the run is final.
    let run: Run = (await get(path)).json();
    while (!isFinal(run.status)) {
      if (run.status === 'awaiting') await post(path, resume);
      await turn();
      run = (await get(path)).json();
    }

    const events: Event[] = (await get(`${path}/events`)).json().events;
    expect(events.filter((event) => 'run' in event && isFinal(event.run.status))).toHaveLength(1);
    expect(events.at(-1)).toEqual({ type: `run.${run.status}`, run: withoutInput(run) });
    expect(transitionsOf(events).filter(([before, after]) => !canBecome(before, after))).toEqual([]);
    expect(run.finished_at).toBeDefined();
    expect(run.await_request).toBeUndefined();
    expect(run.error !== undefined).toBe(run.status === 'failed');

    // Every reader saw the same events, numbered from 1, with no missing or duplicate ones.
    for (const { body } of await Promise.all([...tails, tail()])) {
      const seen = parseFrames(body);
      expect(seen.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
      expect(seen.map(({ event }) => event)).toEqual(events);
    }
    // The log folds into the Run, from the first event and from any event that carries the whole Run.
    const folded = events.reduce<Run | undefined>((state, event) => {
      if ('run' in event && state !== undefined)
        expect(event.run.output).toEqual(isFinal(event.run.status) ? state.output : []);
      return state === undefined && 'run' in event
        ? structuredClone(event.run)
        : state && fold(state, structuredClone(event));
    }, undefined);
    expect(folded).toEqual(withoutInput(run));
  } finally {
    await app.close();
  }
}

/**
 * Random agents, and random requests meanwhile: each run ends with one final event, by valid transitions, with the same
 * log for every reader. FC_RUNS=2000 does more.
 */
export const expectModel = (store: string, numRuns: number): Promise<void> =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.array(action, { maxLength: 12 }), (steps, actions) =>
      playOut(steps, actions, store),
    ),
    {
      numRuns: Number(process.env.FC_RUNS ?? numRuns),
      // A plan that hangs, or that takes long to shrink, is printed before the test ends at its own limit.
      timeout: 30_000,
      interruptAfterTimeLimit: 180_000,
      markInterruptAsFailure: true,
    },
  );
