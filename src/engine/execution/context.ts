import { defer, finalize, firstValueFrom, lastValueFrom, map, type Observable, type ObservableInput } from 'rxjs';
import type { AgentContext, AgentLog, AgentOutput, AgentSession, Awaitable, AwaitOptions } from '../../core/agent.ts';
import { checkAwait, checkCall, checkCalled } from '../../core/check-output.ts';
import { errorOf, fail } from '../../core/errors.ts';
import { fromAgent, outputOf, type Source } from '../../core/from-agent.ts';
import { checkContentTypes } from '../../core/messages.ts';
import { toMessage } from '../../core/to-events.ts';
import type { Message } from '../../schema/message.ts';
import type { AwaitRequest, AwaitResume } from '../../schema/run.ts';
import type { Registry } from '../registry.ts';
import { Abort } from './abort.ts';
import { Lazy, type Unstarted } from './lazy.ts';
import type { ReorderBuffer } from './reorder-buffer.ts';
import { checkReplySchema } from './reply-schema.ts';
import type { Steps } from './steps.ts';
import { ignored, reported } from './unhandled.ts';

/** What a context needs of the execution that it belongs to. */
export interface ContextHost {
  readonly run_id: string;
  readonly registry: Registry;
  readonly logFor: (run_id: string) => AgentLog;
  readonly source: Source;
  /** In a durable run. */
  readonly steps: Steps | undefined;
  /** Milliseconds until an await without a reply ends the run; zero for never. */
  readonly awaitTimeout: number;
  /** Tells calls apart while the run is led through its past. */
  readonly reorderBuffer: ReorderBuffer | undefined;
  readonly unstarted: Unstarted;
  readonly now: () => string;
  /** The same one each time. */
  session(): AgentSession;
  ask(request: AwaitRequest): Observable<AwaitResume>;
  use(tokens: number): void;
}

const maxDepth = 16;

/** What a context can do, for an agent or one that it called. What few agents ask for is made when they do. */
class Powers {
  readonly host: ContextHost;
  readonly agent_name: string;
  readonly abort: Abort;
  readonly depth: number;
  #log: AgentLog | undefined;

  constructor(host: ContextHost, agent_name: string, abort: Abort, depth: number) {
    this.host = host;
    this.agent_name = agent_name;
    this.abort = abort;
    this.depth = depth;
  }

  get log(): AgentLog {
    this.#log ??= this.host.logFor(this.host.run_id);
    return this.#log;
  }

  await(request: string | Message | AwaitRequest, options: AwaitOptions = {}): Awaitable<AwaitResume> {
    const begin = (): Observable<AwaitResume> => {
      const { agent_name, host } = this;
      const { awaitTimeout } = host;
      const asked = checkAwait(agent_name, request, options, { now: host.now(), awaitTimeout });
      if (asked.schema !== undefined) checkReplySchema(agent_name, asked.schema);
      return host.ask(asked);
    };
    return this.#lazy('context.await', begin, (replies) => firstValueFrom(replies));
  }

  step<T>(
    name: string,
    work: () => ObservableInput<T>,
    again?: (before: readonly T[]) => ObservableInput<T>,
  ): Awaitable<T> {
    const { steps, source } = this.host;
    const begin = (): Observable<T> =>
      steps === undefined ? fromAgent(work(), source) : steps.step(name, { work, again });
    // Typed as rxjs types it: what has no value resolves to undefined.
    const last = (values: Observable<T>) => lastValueFrom(values, { defaultValue: undefined }) as Promise<T>;
    return this.#lazy(`Step ${name}`, begin, last);
  }

  // The callee's output is its caller's: it joins the same run, and unsubscribing is what cancels it.
  call(name: string, input: string | Message | readonly Message[]): Awaitable<AgentOutput, Message> {
    const { host, abort: caller, depth } = this;
    const begin = (): Observable<AgentOutput> => {
      if (depth >= maxDepth) throw fail('call_depth', maxDepth);
      const agent = host.registry.get(name);
      const messages = checkCall(this.agent_name, input, host.now());
      checkContentTypes(name, agent.manifest.input_content_types ?? ['*/*'], messages);
      const abort = new Abort(this.report);
      const cascade = (): void => abort.abort(caller.reason ?? 'its caller is over');
      const parent = caller.signal;
      parent.addEventListener('abort', cascade);
      const context = createContext(host, name, abort, depth + 1);
      return defer(() => outputOf(name, agent.run(messages, context), host.source)).pipe(
        map((output) => checkCalled(name, output, host.now())),
        finalize(() => {
          parent.removeEventListener('abort', cascade);
          abort.abort(`the call of ${name} is over`);
        }),
      );
    };
    const { reorderBuffer } = host;
    const branch = reorderBuffer === undefined ? begin : () => reorderBuffer.branch(defer(begin));
    return this.#lazy(`context.call of ${name}`, branch, (output) => toMessage(name, output, host.now));
  }

  usage({ tokens }: { tokens: number }): void {
    if (!Number.isFinite(tokens) || tokens < 0)
      throw new RangeError(`usage: tokens has to be 0 or more, got ${tokens}`);
    // After the end it counts nowhere, and is no error: an agent may call it while it cleans up.
    if (this.abort.reason === undefined) this.host.use(tokens);
  }

  readonly report = (error: unknown): void => {
    this.log.warn(`a listener of the signal failed: ${errorOf(error).message}`);
  };

  /** `begin` runs for each subscription while the run is open; after it the subscriber gets `run_not_open`. */
  #lazy<T, R>(what: string, begin: () => Observable<T>, collect: (values: Observable<T>) => Promise<R>): Lazy<T, R> {
    const { abort, agent_name } = this;
    const { unstarted } = this.host;
    const made = { agent_name, what };
    if (abort.reason === undefined) unstarted.add(made);
    return new Lazy(() => {
      unstarted.delete(made);
      if (abort.reason !== undefined) throw reported(fail('run_not_open', what, abort.reason), ignored);
      return begin();
    }, collect);
  }
}

const powers = Symbol('powers');

// Own properties, so that an agent may copy a context, or take what it needs out of it; but the same functions for all.
const lazy: PropertyDescriptorMap & ThisType<{ readonly [powers]: Powers }> = {
  signal: {
    enumerable: true,
    get() {
      return this[powers].abort.signal;
    },
  },
  session: {
    enumerable: true,
    get() {
      return this[powers].host.session();
    },
  },
  log: {
    enumerable: true,
    get() {
      return this[powers].log;
    },
  },
};

// No getters of its own, and no closures: V8 then keeps them, and with them the whole run, until the next full
// collection. That was a third of what a short run cost.
class Context implements AgentContext {
  readonly run_id: string;
  readonly agent_name: string;
  declare readonly signal: AbortSignal;
  declare readonly session: AgentSession;
  declare readonly log: AgentLog;
  readonly await: AgentContext['await'];
  readonly step: AgentContext['step'];
  readonly call: AgentContext['call'];
  readonly usage: AgentContext['usage'];
  readonly [powers]: Powers;

  constructor(mine: Powers) {
    this.run_id = mine.host.run_id;
    this.agent_name = mine.agent_name;
    this.await = mine.await.bind(mine);
    this.step = mine.step.bind(mine);
    this.call = mine.call.bind(mine);
    this.usage = mine.usage.bind(mine);
    this[powers] = mine;
    Object.defineProperties(this, lazy);
  }
}

/** The context of an agent, or of one that it called: same run, same session, its own name and signal. */
export const createContext = (host: ContextHost, agent_name: string, abort: Abort, depth = 0): AgentContext =>
  new Context(new Powers(host, agent_name, abort, depth));
