import {
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  firstValueFrom,
  ignoreElements,
  map,
  merge,
  NEVER,
  type Observable,
  type ObservableInput,
  of,
  race,
  range,
  take,
  tap,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import { type Agent, type AgentContext, type AgentOutput, defineAgent } from '../../src/core/agent.ts';
import type { Clock, Owner } from './clock.ts';
import type { Act, Script } from './script.ts';
import { unstorable } from './sim-store.ts';

/** One life of an agent: one execution of a run on a node. */
export interface Life {
  readonly run_id: string;
  readonly node: Owner;
  readonly number: number;
  readonly durable: boolean;
  readonly context: AgentContext;
  /** Whether its execution is open. */
  over: boolean;
}

/** Observes the actions of agents; see `invariants.ts`. */
export interface Watch {
  began(life: Life): void;
  ended(life: Life): void;
  /** The work of a step, or another effect outside of the run, begins. Returns a value that is unique to this work. */
  worked(life: Life, tag: string): string;
  /** An effect outside begins, which uses a key. */
  paid(life: Life, tag: string, key: string): void;
  /** An effect outside undoes what the run did before. */
  undone(life: Life, tag: string): void;
  /** The agent got a reply to its question. */
  replied(life: Life, tag: string, text: string): void;
}

/** The agents that perform scripts; the same ones on every node, as in a deployment. */
export function createAgents(clock: Clock, watch: Watch): Agent[] {
  let lives = 0;
  const perform = (script: Script, context: AgentContext): ObservableInput<AgentOutput> => {
    lives += 1;
    const { durable } = script;
    const life: Life = { run_id: context.run_id, node: clock.owner, number: lives, durable, context, over: false };
    const end = (): void => {
      if (life.over) return;
      life.over = true;
      watch.ended(life);
    };
    // Work that cannot be unsubscribed learns only from the signal that the run has ended.
    context.signal.addEventListener('abort', end);
    watch.began(life);
    const actor = new Actor(life, watch);
    return script.style === 'chain'
      ? actor.all(script.acts, context).pipe(finalize(end))
      : actor.generate(script.acts, context);
  };
  const names = ['chain', 'generator', 'chain-durable', 'generator-durable'];
  const agents = names.map((name) =>
    defineAgent(
      { name, description: 'Performs a script.' },
      (input, context) => perform(scriptOf(input[0]?.parts[0]?.content), context),
      { durable: name.endsWith('-durable') },
    ),
  );
  // The agent that others call: its script is part of its caller's life.
  const callee = defineAgent({ name: 'callee', description: 'Performs a part of a script.' }, (input, context) => {
    const { key, acts } = JSON.parse(input[0]?.parts[0]?.content ?? '{}');
    const actor = Actor.of.get(key);
    return actor === undefined ? EMPTY : actor.all(acts, context);
  });
  return [...agents, callee];
}

const scriptOf = (text: string | undefined): Script => JSON.parse(text ?? '').script;

/** Plays the acts of one life. */
class Actor {
  /** The lives with open calls, by run and number. */
  static readonly of = new Map<string, Actor>();
  readonly #life: Life;
  readonly #watch: Watch;

  constructor(life: Life, watch: Watch) {
    this.#life = life;
    this.#watch = watch;
  }

  all(acts: readonly Act[], context: AgentContext, inMerge = false): Observable<AgentOutput> {
    return concat(...acts.map((act) => defer(() => this.#one(act, context, inMerge))));
  }

  /** The same as an async generator, which goes on until its next `yield` after it is unsubscribed. */
  async *generate(acts: readonly Act[], context: AgentContext): AsyncGenerator<AgentOutput> {
    for (const act of acts) yield* await firstValueFrom(this.#one(act, context, false).pipe(toArray()));
  }

  #one(act: Act, context: AgentContext, inMerge: boolean): Observable<AgentOutput> {
    const { tag } = act;
    const life = this.#life;
    switch (act.do) {
      case 'say':
        return of(`[say ${tag}]`);
      case 'message':
        return of<AgentOutput>({ role: 'agent', parts: [{ content: `[message ${tag}]` }] });
      case 'generic':
        return of<AgentOutput>({ type: 'generic', generic: { tag } });
      case 'usage':
        return defer(() => {
          context.usage({ tokens: 3 });
          return EMPTY;
        });
      case 'state':
        return defer(() => context.session.setState({ tag })).pipe(map(() => `[state ${tag}]`));
      case 'history':
        return context.session.history.pipe(
          toArray(),
          map((messages) => `[history ${tag}=${messages.length}]`),
        );
      case 'wait':
        return inMerge && life.durable ? this.#timed(context, act.ms, tag) : timer(act.ms).pipe(ignoreElements());
      case 'step':
        return this.#step(context, act.ms, act.values, tag);
      case 'ask':
        return this.#ask(context, tag, act.expires);
      case 'pay':
        return this.#pay(context, act.ms, tag);
      case 'hold':
        return this.#hold(context, tag);
      case 'talk':
        return merge(this.#ask(context, tag, 0), this.#talk(context, act.ms, act.values, tag));
      case 'race':
        return race(this.#ask(context, tag, 0), this.#timed(context, act.ms, tag).pipe(endWithText(`[late ${tag}]`)));
      case 'merge':
        return merge(...act.acts.map((acts) => this.all(acts, context, true)));
      case 'call':
        return this.#call(context, act.acts[0] ?? [], tag);
      case 'throw':
        return throwError(() => new Error(`thrown by ${tag}`));
      case 'never':
        return NEVER;
      case 'nonsense':
        // A cast, because TypeScript does not let an agent emit it.
        return of(42 as unknown as AgentOutput);
      case 'unstorable':
        return of(unstorable);
      case 'stray':
        void this.#stray(context, act.ms, tag);
        return EMPTY;
    }
  }

  #step(context: AgentContext, ms: number, values: number, tag: string): Observable<AgentOutput> {
    const work = (): Observable<string> => {
      const value = this.#watch.worked(this.#life, `step ${tag}`);
      return ms === 0
        ? range(0, values).pipe(map((index) => `${value}.${index}`))
        : timer(ms, 10).pipe(
            take(values),
            map((index) => `${value}.${index}`),
          );
    };
    // Work that was cut off continues after its last value.
    const again = (before: readonly string[]): Observable<string> => {
      const value = this.#watch.worked(this.#life, `rest of step ${tag}`);
      return range(before.length, values - before.length).pipe(map((index) => `${value}.${index}`));
    };
    return context.step(`step ${tag}`, work, again).pipe(
      toArray(),
      map((all) => `[step ${tag}=${all.join(',')}]`),
    );
  }

  #pay(context: AgentContext, ms: number, tag: string): Observable<AgentOutput> {
    const makeKey = (): Observable<string> => of(this.#watch.worked(this.#life, `key ${tag}`));
    const pay = (key: string): Observable<string> => {
      this.#watch.paid(this.#life, tag, key);
      return timer(ms).pipe(map(() => key));
    };
    return context.step(`key ${tag}`, makeKey).pipe(
      concatMap((key) => context.step(`pay ${tag}`, () => pay(key))),
      map((key) => `[pay ${tag}=${key}]`),
    );
  }

  #hold(context: AgentContext, tag: string): Observable<AgentOutput> {
    return defer(() => {
      let isDone = false;
      return this.#ask(context, tag, 0).pipe(
        tap(() => {
          isDone = true;
        }),
        finalize(() => isDone || this.#watch.undone(this.#life, tag)),
      );
    });
  }

  #talk(context: AgentContext, ms: number, values: number, tag: string): Observable<AgentOutput> {
    const work = (before: readonly string[]): Observable<string> => {
      this.#watch.worked(this.#life, `talk ${tag}`);
      return timer(ms, ms).pipe(
        take(values - before.length),
        map((index) => `[talk ${tag}.${before.length + index}]`),
      );
    };
    return context.step(`talk ${tag}`, () => work([]), work);
  }

  /** A timer that fires once, however often the run is re-entered. */
  #timed(context: AgentContext, ms: number, tag: string): Observable<never> {
    return context.step(`time ${tag}`, () => timer(ms)).pipe(ignoreElements());
  }

  #ask(context: AgentContext, tag: string, expires: number): Observable<AgentOutput> {
    return context.await(`question ${tag}`, expires > 0 ? { expiresIn: expires * 1_000 } : {}).pipe(
      map(({ message }) => message.parts[0]?.content ?? ''),
      tap((text) => this.#watch.replied(this.#life, tag, text)),
      map((text) => `[reply ${tag}=${text}]`),
    );
  }

  #call(context: AgentContext, acts: readonly Act[], tag: string): Observable<AgentOutput> {
    const key = `${this.#life.number} ${tag}`;
    return defer(() => {
      Actor.of.set(key, this);
      return context.call('callee', JSON.stringify({ key, acts }));
    }).pipe(finalize(() => Actor.of.delete(key)));
  }

  /** A careless agent: a promise that is not awaited, and that uses the context later. */
  async #stray(context: AgentContext, ms: number, tag: string): Promise<void> {
    const ignore = (): void => {};
    await new Promise((resolve) => setTimeout(resolve, ms));
    // Only after the end of the run: a durable agent that is not deterministic may diverge.
    if (!this.#life.over) return;
    const work = (): Observable<string> => of(this.#watch.worked(this.#life, `stray ${tag}`));
    await firstValueFrom(context.step(`stray ${tag}`, work), { defaultValue: '' }).catch(ignore);
    context.await(`stray ${tag}`).subscribe({ error: ignore });
    context.call('callee', '{}').subscribe({ error: ignore });
    await context.session.setState({ stray: tag }).catch(ignore);
    try {
      context.usage({ tokens: 1 });
    } catch {
      // The context rejects, because the run has ended.
    }
  }
}

/** Emits a value when a source without values completes. */
const endWithText =
  (text: string) =>
  (source: Observable<never>): Observable<AgentOutput> =>
    concat(source, of(text));
