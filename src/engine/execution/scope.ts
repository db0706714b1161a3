import { AsyncLocalStorage } from 'node:async_hooks';
import { concat, defer, from, ignoreElements, type Observable, tap } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';

/** Between the parts of a step's id. A step's name cannot have it. */
const within = ' > ';

/** Whether a step began in the work of another one. Both are ids. */
export const isWithin = (outer: string, step: string): boolean =>
  step.startsWith(`${outer}${within}`) || step.startsWith(`${outer}+`);

/** Where an agent's output goes: into its run, or into the answer of a call that is awaited. */
export interface Output {
  /** Counts what the agent has emitted. */
  readonly emitted: number;
  /**
   * A step's work was cut off, and does something else now. The agent had emitted `since` outputs when it was given the first
   * of the step's old `values` (JSON), and has emitted more since.
   */
  interrupt(since: number, values: readonly (string | undefined)[]): void;
}

/** The output of a called agent whose answer is awaited: kept until the agent is done. */
export class AnswerOutput implements Output {
  #kept: AgentOutput[] = [];

  get emitted(): number {
    return this.#kept.length;
  }

  /** What the agent has emitted, at its end. */
  of(said: Observable<AgentOutput>): Observable<AgentOutput> {
    const keeping = said.pipe(
      tap((output) => void this.#kept.push(output)),
      ignoreElements(),
    );
    return concat(
      keeping,
      defer(() => from(this.#kept)),
    );
  }

  /** Leaves out the values of the step that the agent has passed on unchanged. Its other output stays. */
  interrupt(since: number, values: readonly (string | undefined)[]): void {
    // An empty text is no output.
    const passedOn = values.filter((value) => value !== '""');
    let next = 0;
    this.#kept = this.#kept.filter((output, index) => {
      const isPassedOn = index >= since && next < passedOn.length && JSON.stringify(output) === passedOn[next];
      if (isPassedOn) next += 1;
      return !isPassedOn;
    });
  }
}

/**
 * Where in a run steps begin and agents are called: in the run's own agent, in an agent that is called, or in the work of a
 * step. Steps, calls and tools are counted for each scope. So they have the same ids in every life of the run, whichever of
 * several concurrent calls is faster, and although the work of a step is not done again.
 */
export class Scope {
  /** The calls that led here, as `panel/1 optimist/1`; empty for the run's own agent. */
  readonly calls: readonly string[];
  /** The agent that is called and its number, as the scope of the caller counts it: `pay/1`; empty for the run's own agent. */
  readonly called: string;
  /** Before the ids of its steps: empty for the run's own agent, `pay/1`, `book#0`, or `book#0 > pay/1`. */
  readonly #prefix: string;
  /** The id of the innermost step whose work this scope is in. */
  readonly step: string | undefined;
  /** Where the output of the agent goes. */
  readonly output: Output;
  /** The scope of the agent, where this is the work of one of its steps. */
  readonly #agent: Scope | undefined;
  /** The scope in which that work began. */
  readonly #outer: Scope | undefined;
  /** By name, how many steps have begun, and how often each agent was called. Made with the first entry. */
  #counts: Map<string, number> | undefined;

  private constructor(
    prefix: string,
    calls: readonly string[],
    output: Output,
    {
      called = '',
      step,
      agent,
      outer,
    }: { called?: string; step?: string | undefined; agent?: Scope; outer?: Scope | undefined } = {},
  ) {
    this.#prefix = prefix;
    this.calls = calls;
    this.output = output;
    this.called = called;
    this.step = step;
    this.#agent = agent;
    this.#outer = outer;
  }

  static ofRun(output: Output): Scope {
    return new Scope('', [], output);
  }

  /** The scope that the code which runs now is in: the work of a step of this scope's agent, or this scope. */
  get now(): Scope {
    for (let scope = working?.getStore(); scope !== undefined; scope = scope.#outer)
      if (scope.#agent === this) return scope;
    return this;
  }

  /** The id of the next step of that name: its name and the number of earlier ones, after the scope that it is in. */
  nextStep(name: string): string {
    const own = name.replaceAll(within, ' >> ');
    return this.#within(`${own}#${this.#count(`step ${own}`)}`);
  }

  /**
   * The scope of the agent that is called. With `asStep`, its whole answer is the value of a step. `output` is where the
   * agent's output goes; by default where the caller's goes.
   */
  call(agent: string, asStep: boolean, output = this.output): Scope {
    const count = this.#count(`call ${agent}`) + 1;
    const own = `${agent}/${count}`;
    const shown = this.#shown(agent, count);
    const prefix = this.#agent === undefined && this.#prefix !== '' ? `${this.#prefix} ${own}` : this.#within(own);
    const step = asStep ? this.#within(`call ${own}#0`) : this.step;
    return new Scope(prefix, [...this.calls, shown], output, { called: own, step, outer: working?.getStore() });
  }

  /** The id that clients see of the next call of a tool. */
  nextTool(): string {
    return [...this.calls, this.#shown('tool', this.#count('tool') + 1)].join(' ');
  }

  /**
   * The scope of a step's work. Work that continues after `before` values, and does not repeat them, has other steps than the
   * work before, so its scope has another prefix.
   */
  workOf(step: string, before: number): Scope {
    const prefix = before === 0 ? step : `${step}+${before}`;
    return new Scope(prefix, this.calls, this.output, { step, agent: this.#agent ?? this, outer: working?.getStore() });
  }

  /** Runs work in this scope: what it begins, now or later, finds the scope with `now`. */
  run<T>(work: () => T): T {
    working ??= new AsyncLocalStorage();
    return working.run(this, work);
  }

  /** Clients see a path of calls only. The journal's path has steps as well. */
  #shown(name: string, count: number): string {
    return this.#agent === undefined
      ? `${name}/${count}`
      : `${name}/${this.#prefix.replace(/[^\w#+/-]+/g, '_')}.${count}`;
  }

  #within(own: string): string {
    return this.#prefix === '' ? own : `${this.#prefix}${within}${own}`;
  }

  #count(what: string): number {
    this.#counts ??= new Map();
    const count = this.#counts.get(what) ?? 0;
    this.#counts.set(what, count + 1);
    return count;
  }
}

/** Made for the first step: Node 20 follows each promise of the process from then on. */
let working: AsyncLocalStorage<Scope> | undefined;
