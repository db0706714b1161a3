import fc from 'fast-check';
import {
  catchError,
  concat,
  concatMap,
  concatWith,
  defer,
  ignoreElements,
  map,
  merge,
  type Observable,
  of,
  range,
  tap,
  timer,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  type Agent,
  type AgentContext,
  type AgentOutput,
  createServer,
  defineAgent,
  type Event,
  fold,
  isFinal,
  type Run,
  type Store,
} from '../../src/index.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { withoutInput } from '../support/details.ts';
import { apiOnly } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

/** The actions of a durable agent; everything that may differ in a replay is in steps. */
type Act = {
  do:
    | 'token'
    | 'message'
    | 'generic'
    | 'value'
    | 'promise'
    | 'stream'
    | 'failing'
    | 'await'
    | 'asks'
    | 'beside'
    | 'parallel'
    | 'state';
};

const act: fc.Arbitrary<Act> = fc.record({
  do: fc.constantFrom(
    'token',
    'message',
    'generic',
    'value',
    'promise',
    'stream',
    'failing',
    'await',
    'asks',
    'beside',
    'parallel',
    'state',
  ),
}) as fc.Arbitrary<Act>;

const slow = (prefix: string): Observable<string> =>
  range(0, 3).pipe(concatMap((n) => timer(0).pipe(map(() => `${prefix}${n};`))));

/** A step that emits while a question is open: its output shows when the reply came. */
function beside(context: AgentContext, n: number): Observable<AgentOutput> {
  let answers = 0;
  return merge(
    context.await(`?${n}`).pipe(
      tap(() => {
        answers += 1;
      }),
      ignoreElements(),
    ),
    context
      .step('beside', () => slow('').pipe(concatWith(slow(''))))
      .pipe(map((text) => ({ type: 'generic' as const, generic: { text, answers } }))),
  );
}

function perform({ do: what }: Act, context: AgentContext, n: number): Observable<AgentOutput> {
  switch (what) {
    case 'token':
      return of(`t${n};`);
    case 'message':
      return of({ role: 'agent', parts: [{ content: `m${n}` }, { content: 'x', content_type: 'text/html' }] });
    case 'generic':
      return of({ type: 'generic', generic: { n } });
    case 'value':
      return context.step('value', () => of(`v${n};`));
    case 'promise':
      return context.step('promise', async () => `p${n};`);
    case 'stream':
      return context.step('stream', () => slow(`s${n}.`));
    case 'failing':
      return context.step('failing', () => Promise.reject(new Error('no'))).pipe(catchError(() => of('caught;')));
    case 'await':
      return context.await(`?${n}`).pipe(map(({ message }) => `a${n}=${message.parts[0]?.content};`));
    case 'asks':
      // Two questions at once, which are asked one after the other.
      return merge(context.await(`?${n}.0`), context.await(`?${n}.1`)).pipe(
        map(({ message }) => `a${n}=${message.parts[0]?.content};`),
      );
    case 'beside':
      return beside(context, n);
    case 'parallel':
      return merge(
        context.step('left', () => slow(`l${n}.`)),
        context.step('right', () => slow(`r${n}.`)),
      );
    case 'state':
      return defer(async () => {
        const count = (await context.session.state<number>()) ?? 0;
        await context.session.setState(count + 1);
        return `c${count};`;
      });
  }
}

const agentOf = (acts: Act[]): Agent =>
  defineAgent(
    { name: 'random', description: 'Random.' },
    (_, context) => concat(...acts.map((one, n) => defer(() => perform(one, context, n)))),
    { durable: true },
  );

/** Serves until the run is final, and replies to its questions; the reply depends on the question. */
async function toTheEnd(
  agent: Agent,
  store: Store,
  start: boolean,
): Promise<{ run: Run; events: Event[] } | undefined> {
  const app = await createServer({
    agents: [agent],
    store,
    ...apiOnly,
    limits: { shutdownGrace: 0, attempts: 0 },
  });
  try {
    await app.ready();
    const payload = { agent_name: 'random', mode: 'async', input: [{ parts: [{ content: 'go' }] }] };
    if (start) await app.inject({ method: 'POST', url: '/runs', payload });
    const [first] = (await app.inject('/runs')).json().runs;
    if (first === undefined) return undefined;
    const path = `/runs/${first.run_id}`;
    // A list has no outputs.
    let run: Run = (await app.inject(path)).json();
    while (!isFinal(run.status)) {
      const asked = run.await_request?.message.parts[0]?.content;
      const await_resume = { type: 'message', message: { parts: [{ content: `re ${asked}` }] } };
      if (run.status === 'awaiting')
        await app.inject({ method: 'POST', url: path, payload: { mode: 'async', await_resume } });
      await turn();
      run = (await app.inject(path)).json();
    }
    return { run, events: (await app.inject(`${path}/events`)).json().events };
  } finally {
    await app.close();
  }
}

const said = ({ output }: Run): unknown => output.map(({ role, parts }) => ({ role, parts }));
/** The order of two parallel steps is not guaranteed; that each is complete and in its own order, is. */
const sorted = (run: Run): unknown =>
  JSON.stringify(said(run))
    .match(/[a-z]\d+[.=][^;]*;|[tvpc]\w*;|m\d+/g)
    ?.sort();

describe('a durable run that is cut off at any commit', () => {
  it('ends in the same Run as without the cut, and keeps its events', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(act, { minLength: 1, maxLength: 6 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (acts, where) => {
          const store = new RecordingStore();
          const whole = await toTheEnd(agentOf(acts), store, true);
          const cut = Math.floor(where * store.commits.length);
          const kept = await store.after(cut);
          const [row] = await kept.runs({}, undefined, 1);
          const before = row === undefined ? [] : (await kept.events(row.run_id, 0, 1e6)).flatMap(({ lines }) => lines);
          const again = await toTheEnd(agentOf(acts), kept, false);
          expect(again === undefined).toBe(row === undefined);
          if (again === undefined || whole === undefined) return;
          expect(again.run.error).toBeUndefined();
          expect(again.run.status).toBe('completed');
          expect(again.events.slice(0, before.length)).toEqual(before.map((line) => JSON.parse(line)));
          if (acts.some((one) => one.do === 'parallel')) expect(sorted(again.run)).toEqual(sorted(whole.run));
          else expect(said(again.run)).toEqual(said(whole.run));
          const folded = again.events.reduce<Run | undefined>(
            (run, event) =>
              run === undefined && 'run' in event
                ? structuredClone(event.run)
                : run && fold(run, structuredClone(event)),
            undefined,
          );
          expect(folded).toEqual(withoutInput(again.run));
        },
      ),
      { numRuns: Number(process.env.FC_RUNS ?? 10) },
    );
  });

  it('may be cut off several times', async () => {
    const acts: Act[] = ['stream', 'await', 'promise', 'token', 'parallel', 'await', 'state'].map(
      (what) => ({ do: what }) as Act,
    );
    let store = new RecordingStore();
    const whole = await toTheEnd(agentOf(acts), store, true);
    for (let life = 2; life < 12; life += 1) {
      const cut = store.commits.slice(0, Math.min(store.commits.length - 1, life * 2));
      store = new RecordingStore();
      for (const writes of cut) await store.commit(writes);
      const again = await toTheEnd(agentOf(acts), store, false);
      expect(again?.run).toMatchObject({ status: 'completed' });
      expect(again && sorted(again.run)).toEqual(whole && sorted(whole.run));
    }
  });
});
