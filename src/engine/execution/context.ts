import {
  concat,
  concatMap,
  defer,
  endWith,
  finalize,
  firstValueFrom,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  NEVER,
  Observable,
  type ObservableInput,
  of,
  Subject,
  tap,
} from 'rxjs';
import type {
  AgentContext,
  AgentLog,
  AgentOutput,
  AgentSession,
  Awaitable,
  AwaitOptions,
  ToolOptions,
} from '../../core/agent.ts';
import { unknownOutcomeOf } from '../../core/approval.ts';
import { checkAwait, checkCall, checkCalled } from '../../core/check-output.ts';
import { AgentError, errorOf, fail, hideFrames } from '../../core/errors.ts';
import { checkContentTypes } from '../../core/messages.ts';
import type { ModelCallReport } from '../../core/model-call.ts';
import { type CallReport, maxCallDepth } from '../../core/parts.ts';
import type { AgentSpan, WorkSpan } from '../../core/ports/traces.ts';
import type { Principal } from '../../core/principal.ts';
import { type AgentReply, type ValueOf, withValue } from '../../core/reply.ts';
import type { AgentRequest } from '../../core/request.ts';
import { sleepUntil } from '../../core/timing.ts';
import { collected } from '../../core/to-events.ts';
import { callTool } from '../../core/tool.ts';
import type { GenericEvent } from '../../schema/event.ts';
import type { Message, MessagePart } from '../../schema/message.ts';
import type { AwaitRequest, RunUsage } from '../../schema/run.ts';
import { ignored, reported } from '../unhandled.ts';
import { fromAgent, outputOf } from './from-agent.ts';
import { type AgentHost, unjournaled } from './host.ts';
import { Lazy } from './lazy.ts';
import { joinPairs } from './pair-joiner.ts';
import { checkReplySchema } from './reply-schema.ts';
import { type Closing, RunSignal } from './run-signal.ts';
import { inSpan } from './run-trace.ts';
import type { Scope } from './scope.ts';
import { AnswerOutput } from './scope.ts';
import type { Steps } from './steps.ts';

const usageFields = ['tokens', 'input_tokens', 'output_tokens'] as const;

/** The calls of a context, for an agent or one that it called. What few agents use is made on demand. */
class ContextCalls {
  readonly host: AgentHost;
  readonly agent_name: string;
  readonly runSignal: RunSignal;
  readonly scope: Scope;
  readonly span: AgentSpan | undefined;
  #log: AgentLog | undefined;
  #session: AgentSession | undefined;

  constructor(host: AgentHost, agent_name: string, runSignal: RunSignal, span: AgentSpan | undefined, scope: Scope) {
    this.host = host;
    this.agent_name = agent_name;
    this.runSignal = runSignal;
    this.span = span;
    this.scope = scope;
  }

  get log(): AgentLog {
    const { diagnostics, logFor, run_id } = this.host;
    this.#log ??= diagnostics.keeping(logFor(run_id), this);
    return this.#log;
  }

  /** The calls that led to this agent. */
  get path(): string {
    return this.scope.calls.join(' ');
  }

  get session(): AgentSession {
    this.#session ??= this.host.session(this.scope, this.host.steps);
    return this.#session;
  }

  await<Schema extends object>(
    request: string | Message | AwaitRequest,
    options: AwaitOptions<Schema> = {},
  ): Awaitable<AgentReply<ValueOf<Schema>>> {
    const begin = (): Observable<AgentReply<ValueOf<Schema>>> => {
      const { agent_name, host } = this;
      const { awaitTimeout } = host;
      const asked = checkAwait(agent_name, request, options, { now: host.now(), awaitTimeout });
      if (asked.schema !== undefined) checkReplySchema(agent_name, asked.schema);
      if (host.ask === undefined) throw fail('call_cannot_ask', agent_name);
      const { step, calls } = this.scope.now;
      if (step !== undefined) throw fail('step_cannot_ask', agent_name, step);
      const { path: _, ...question } = asked;
      const reply = host
        .ask(calls.length === 0 ? question : { ...question, path: calls.join(' ') })
        .pipe(map((received) => withValue<ValueOf<Schema>>(received)));
      return options.signal === undefined ? reply : untilAborted(reply, options.signal);
    };
    return this.#lazy('context.await', () => this.#framesHidden(begin), {
      collect: (replies) => firstValueFrom(replies),
    });
  }

  step<T>(
    name: string,
    work: () => ObservableInput<T>,
    again?: (before: readonly T[]) => ObservableInput<T>,
  ): Awaitable<T> {
    return this.#step(name, work, { again });
  }

  tool<Input extends object, Output>(
    name: string,
    input: Input,
    work: (input: Input) => Output | PromiseLike<Output>,
    options: ToolOptions = {},
  ): AsyncGenerator<MessagePart, Output> {
    const id = this.scope.now.nextTool();
    const step: AgentContext['step'] = (named, begin, again) =>
      this.#step(named, begin, { again, span: () => this.span?.tool(name, id) });
    const asks: AgentContext['await'] = (request, how) => this.await(request, how);
    const { steps, journalBegun } = this.host;
    const committed = () => this.committed();
    const call = { ...options, name, input, work };
    if (steps !== undefined || options.repeatable !== false)
      return callTool({ step, await: asks, committed }, id, call);
    // A run that is not durable has only one execution. In a durable run, the call of this agent is what is not repeated.
    const begin = async (given: Input): Promise<Output> => {
      if (journalBegun !== undefined) {
        journalBegun();
        await committed();
      }
      return work(given);
    };
    return callTool({ step, await: asks, committed }, id, { ...call, repeatable: true, work: begin });
  }

  cleanup<T>(name: string, work: () => ObservableInput<T>): Awaitable<T> {
    return this.#step(name, work, { isCleanup: true });
  }

  #step<T>(
    name: string,
    work: () => ObservableInput<T>,
    { again, isCleanup = false, span = () => this.span?.step(name) }: StepOptions<T>,
  ): Awaitable<T> {
    const { steps, source } = this.host;
    // In the span is the work that is done, and no value that comes from the journal.
    const spanned = (does: () => ObservableInput<T>): Observable<T> =>
      inSpan(() => fromAgent(does(), source), span(), this.span);
    const begin = (): Observable<T> =>
      steps === undefined
        ? spanned(work)
        : steps.step(this.scope.now, name, {
            work: () => spanned(work),
            again: again && ((before) => spanned(() => again(before))),
          });
    // A step without a value resolves to undefined, which the type leaves out: most steps have values.
    const last = (values: Observable<T>) => lastValueFrom(values, { defaultValue: undefined }) as Promise<T>;
    return this.#lazy(`Step ${name}`, begin, { collect: last, isCleanup });
  }

  sleep(milliseconds: number): Awaitable<void> {
    return this.#sleep('context.sleep', () => Date.parse(this.host.now()) + milliseconds);
  }

  sleepUntil(time: Date | string): Awaitable<void> {
    return this.#sleep('context.sleepUntil', () => new Date(time).getTime());
  }

  #sleep(what: string, timeOf: () => number): Awaitable<void> {
    const { steps, work, now } = this.host;
    const sleep = (until: string): Observable<never> => {
      const time = Date.parse(until);
      const wake = work?.sleep(time);
      return sleepUntil(time, () => Date.parse(now())).pipe(finalize(() => wake?.()));
    };
    const begin = (): Observable<void> => {
      const fallAsleep = (): Observable<string> => {
        const until = endOfSleep(what, timeOf());
        return concat(
          of(until),
          defer(() => sleep(until)),
        );
      };
      const slept =
        steps === undefined
          ? defer(fallAsleep)
          : steps.step(this.scope.now, what, {
              work: fallAsleep,
              again: ([until = '']) => defer(() => sleep(until)),
              sleeps: true,
            });
      return slept.pipe(ignoreElements(), endWith(undefined));
    };
    return this.#lazy(what, begin, { collect: (slept) => lastValueFrom(slept) });
  }

  // The called agent's output joins the caller's run. Unsubscribing cancels the call.
  call(name: string, input: string | Message | readonly Message[]): Awaitable<AgentOutput, Message> {
    const { host } = this;
    const { registry, steps } = host;
    const what = `context.call of ${name}`;
    const output = () => this.#framesHidden(() => this.#call(name, input));
    // An agent that is not durable may answer otherwise when it is called again, so its answer is kept.
    const answer = () => this.#framesHidden(() => this.#call(name, input, { steps }));
    if (steps !== undefined && registry.find(name)?.options.durable !== true)
      return this.#lazy(what, output, { awaited: answer, collect: (one) => lastValueFrom(one) as Promise<Message> });
    return this.#lazy(what, output, {
      awaited: () => this.#framesHidden(() => this.#call(name, input, { output: new AnswerOutput() })),
      collect: (all) => lastValueFrom(collected(name, all, host.now)),
    });
  }

  /**
   * The output of a call; with `steps`, the answer of the call as one message, which is the value of a step. `output` is where
   * the output of the called agent goes. Default: where the output of the caller goes.
   */
  #call(
    name: string,
    input: string | Message | readonly Message[],
    { steps, output: answer }: { steps?: Steps; output?: AnswerOutput } = {},
  ): Observable<AgentOutput> {
    const { host, runSignal: caller } = this;
    const { reorderBuffer } = host;
    if (this.scope.calls.length >= maxCallDepth) throw fail('call_depth', maxCallDepth);
    const agent = host.registry.called(name);
    const messages = checkCall(this.agent_name, input, host.now());
    checkContentTypes(name, agent.manifest.input_content_types ?? ['*/*'], messages);
    const runSignal = new RunSignal(this.report);
    const close = (reason: string): void => runSignal.abort(caller.closing ?? { reason, as: 'ended' });
    const cascade = (): void => close('its caller is over');
    const parent = caller.signal;
    parent.addEventListener('abort', cascade);
    const from = this.scope.now;
    const scope = from.call(name, steps !== undefined, answer);
    const path = scope.calls.join(' ');
    const span = this.span?.call(agent.manifest);
    /** Emits where the agent is about to do what must not be repeated. */
    const begun = new Subject<'begun'>();
    const own = steps === undefined ? host : unjournaled(host, () => begun.next('begun'));
    const context = createContext(own, name, runSignal, span, scope);
    const said = inSpan(
      () => joinPairs(() => outputOf(name, agent.run(messages, context), host.source)),
      span,
      this.span,
    ).pipe(map((output) => checkCalled(name, output, host.now())));
    const output: Observable<AgentOutput> =
      steps === undefined
        ? onceAllowed(host.whenWorkMayBegin(), answer?.of(said) ?? said)
        : steps.step<AgentOutput>(from, `call ${scope.called}`, {
            work: () => merge(begun, collected(name, said, host.now).pipe(finalize(() => begun.complete()))),
            // The last value of the step is the answer.
            again: (before) => {
              if (before.some((one) => one !== 'begun')) return [];
              throw new AgentError('tool_call_unknown', unknownOutcomeOf(name));
            },
          });
    const record = (state: CallReport['state']): void => {
      const report = () =>
        host.record(callEvent({ path, agent: name, state, at: host.now() }), from.step !== undefined);
      if (reorderBuffer === undefined) report();
      else reorderBuffer.inBranch(path, report);
    };
    const end = (state: CallReport['state']): void => {
      host.work?.end(state !== 'cancelled');
      record(state);
    };
    record('began');
    host.work?.begin();
    const followed = output.pipe(
      tap({
        complete: () => end('completed'),
        error: (error) => {
          this.#hideFrames(error);
          end('failed');
        },
        unsubscribe: () => end('cancelled'),
        finalize: () => {
          parent.removeEventListener('abort', cascade);
          close(`the call of ${name} is over`);
        },
      }),
    );
    return reorderBuffer === undefined ? followed : reorderBuffer.branch(path, followed);
  }

  #framesHidden<T>(begin: () => T): T {
    try {
      return begin();
    } catch (error) {
      this.#hideFrames(error);
      throw error;
    }
  }

  /** An agent that has one execution may see where the engine made an error. */
  #hideFrames(error: unknown): void {
    if (this.host.steps !== undefined) hideFrames(error);
  }

  usage(used: Partial<RunUsage>): void {
    for (const name of usageFields) {
      const count = used[name] ?? 0;
      if (!Number.isFinite(count) || count < 0)
        throw new RangeError(`usage: ${name} has to be a finite number of 0 or more, got the ${typeof count} ${count}`);
    }
    // After the end it has no effect and is no error: an agent may call it while it cleans up.
    if (this.runSignal.closing !== undefined) return;
    const { input_tokens, output_tokens, tokens = (input_tokens ?? 0) + (output_tokens ?? 0) } = used;
    this.host.use({ ...used, tokens }, this.scope.now.step);
  }

  committed(): Promise<void> {
    return this.host.committed(this.runSignal);
  }

  modelCall(report: ModelCallReport): void {
    if (this.runSignal.closing !== undefined) return;
    this.span?.modelCall(report);
    this.host.diagnostics.modelCall(report, this);
  }

  trace(): Record<string, string> {
    return this.span?.headers() ?? {};
  }

  readonly report = (error: unknown): void => {
    this.log.warn(`a listener of the signal failed: ${errorOf(error).message}`);
  };

  /**
   * `begin` runs for each subscription while the run is open. After the run's end, the subscriber gets `run_not_open`. After
   * the run has left this process, the subscriber gets nothing.
   */
  #lazy<T, R>(
    what: string,
    begin: () => Observable<T>,
    { awaited = begin, collect, isCleanup = false }: LazyOptions<T, R>,
  ): Lazy<T, R> {
    const { runSignal, agent_name } = this;
    const { unstarted, cleansUp } = this.host;
    const made = { agent_name, what };
    if (runSignal.closing === undefined) unstarted.add(made);
    const start = (work: () => Observable<T>): Observable<T> => {
      unstarted.delete(made);
      if (runSignal.closing === undefined) return work();
      if (runSignal.left) return NEVER;
      if (isCleanup && runSignal.closing.as === 'cancelled' && cleansUp()) return work();
      throw notOpen(what, runSignal.closing);
    };
    return new Lazy(
      () => start(begin),
      () => collect(whileOpen(() => start(awaited), what, runSignal)),
    );
  }
}

interface StepOptions<T> {
  readonly again?: ((before: readonly T[]) => ObservableInput<T>) | undefined;
  readonly isCleanup?: boolean;
  /** The span of its work. Default: the span of a step. */
  readonly span?: () => WorkSpan | undefined;
}

/** How a `Lazy` begins and ends. */
interface LazyOptions<T, R> {
  /** What begins where it is awaited. Default: as where it is subscribed to. */
  readonly awaited?: () => Observable<T>;
  readonly collect: (values: Observable<T>) => Promise<R>;
  /** Whether it may begin while the agent of a cancelled run cleans up. Default: no. */
  readonly isCleanup?: boolean;
}

/** @throws RangeError that names what was given */
function endOfSleep(what: string, time: number): string {
  if (Math.abs(time) <= lastTime) return new Date(time).toISOString();
  throw new RangeError(`${what}: expected a time before the year 10000, or milliseconds until then; got ${time}`);
}

const lastTime = Date.UTC(9999, 11, 31);

const callEvent = (call: CallReport): GenericEvent => ({ type: 'generic', generic: { kind: 'call', ...call } });

const notOpen = (what: string, { reason }: Closing): Error =>
  reported(fail('run_not_open', what, reason).withoutFrames(), ignored);

/** Unsubscribes when the run or the call is over, and fails: a promise has no subscriber that could do so. */
const whileOpen = <T>(begin: () => Observable<T>, what: string, runSignal: RunSignal): Observable<T> =>
  new Observable((subscriber) => {
    const end = (): void => {
      if (runSignal.closing !== undefined && !runSignal.left) subscriber.error(notOpen(what, runSignal.closing));
    };
    subscriber.add(runSignal.onAbort(end));
    begin().subscribe(subscriber);
  });

const untilAborted = <T>(source: Observable<T>, signal: AbortSignal): Observable<T> =>
  new Observable((subscriber) => {
    const end = (): void => subscriber.error(signal.reason);
    if (signal.aborted) return end();
    signal.addEventListener('abort', end);
    subscriber.add(() => signal.removeEventListener('abort', end));
    source.subscribe(subscriber);
  });

const onceAllowed = <T>(allowed: Promise<void> | undefined, source: Observable<T>): Observable<T> =>
  allowed === undefined ? source : from(allowed).pipe(concatMap(() => source));

const calls = Symbol('calls');

// Own properties, so that an agent may copy or destructure a context. All contexts share the getters.
const getters: PropertyDescriptorMap & ThisType<{ readonly [calls]: ContextCalls }> = {
  signal: {
    enumerable: true,
    get() {
      return this[calls].runSignal.signal;
    },
  },
  session: {
    enumerable: true,
    get() {
      return this[calls].session;
    },
  },
  principal: {
    enumerable: true,
    get() {
      return this[calls].host.principal();
    },
  },
  log: {
    enumerable: true,
    get() {
      return this[calls].log;
    },
  },
};

/**
 * What an agent gets as its context. The constructor defines all members: with getters or closures of the class, each run
 * would stay in memory until a full collection.
 */
class Context implements AgentContext {
  readonly run_id: string;
  readonly agent_name: string;
  readonly path: string;
  declare readonly signal: AbortSignal;
  declare readonly session: AgentSession;
  declare readonly principal: Principal | undefined;
  declare readonly log: AgentLog;
  readonly request: AgentRequest;
  readonly await: AgentContext['await'];
  readonly step: AgentContext['step'];
  readonly tool: AgentContext['tool'];
  readonly cleanup: AgentContext['cleanup'];
  readonly committed: AgentContext['committed'];
  readonly sleep: AgentContext['sleep'];
  readonly sleepUntil: AgentContext['sleepUntil'];
  readonly call: AgentContext['call'];
  readonly usage: AgentContext['usage'];
  readonly modelCall: AgentContext['modelCall'];
  readonly trace: AgentContext['trace'];
  readonly [calls]: ContextCalls;

  constructor(own: ContextCalls) {
    this.run_id = own.host.run_id;
    this.agent_name = own.agent_name;
    this.path = own.path;
    this.request = own.host.request;
    this.await = own.await.bind(own);
    this.step = own.step.bind(own);
    this.tool = own.tool.bind(own);
    this.cleanup = own.cleanup.bind(own);
    this.committed = own.committed.bind(own);
    this.sleep = own.sleep.bind(own);
    this.sleepUntil = own.sleepUntil.bind(own);
    this.call = own.call.bind(own);
    this.usage = own.usage.bind(own);
    this.modelCall = own.modelCall.bind(own);
    this.trace = own.trace.bind(own);
    this[calls] = own;
    Object.defineProperties(this, getters);
  }
}

/** The context of an agent, or of one that it called: same run, same session, its own name and signal. */
export const createContext = (
  host: AgentHost,
  agent_name: string,
  runSignal: RunSignal,
  span: AgentSpan | undefined,
  scope: Scope,
): AgentContext => new Context(new ContextCalls(host, agent_name, runSignal, span, scope));
