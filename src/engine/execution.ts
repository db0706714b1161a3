import { defer, Observable, Subject, type Subscriber, takeUntil } from 'rxjs';
import type { Agent, AgentLog, AgentOutput } from '../core/agent.ts';
import { encode } from '../core/encode.ts';
import { errorOf, fail } from '../core/errors.ts';
import { fromAgent } from '../core/from-agent.ts';
import { fold } from '../core/reduce.ts';
import { canBecome, isFinal } from '../core/status.ts';
import { closeMessage, type ToEvents } from '../core/to-events.ts';
import type { ErrorBody } from '../schema/error.ts';
import type { Event } from '../schema/event.ts';
import type { Message } from '../schema/message.ts';
import type { AwaitRequest, AwaitResume, Run, RunStatus } from '../schema/run.ts';
import { createContext } from './context.ts';
import type { Limits } from './limits.ts';
import type { Registry } from './registry.ts';
import type { RunLog } from './run-log.ts';
import type { Sessions } from './sessions.ts';

/** What all executions of an engine share. */
export interface Services {
  readonly registry: Registry;
  readonly sessions: Sessions;
  readonly toEvents: ToEvents;
  readonly limits: Limits;
  readonly now: () => string;
  /** A logger that knows the run. */
  readonly logFor: (run_id: string) => AgentLog;
}

interface Question {
  readonly request: AwaitRequest;
  readonly subscriber: Subscriber<AwaitResume>;
}

/**
 * One live run: subscribes to its agent once, appends what follows to the log, and sees to it that
 * of all the ways to end (completion, error, cancel, the server's stop) the first one wins.
 */
export class Execution {
  readonly run: Run;
  readonly log: RunLog;
  readonly #agent: Agent;
  readonly #input: Message[];
  readonly #services: Services;
  readonly #agentLog: AgentLog;
  readonly #abort = new AbortController();
  readonly #stop = new Subject<void>();
  /** What the agent has under way that unsubscribing cannot stop at once. */
  readonly #pending = new Set<Promise<unknown>>();
  /** The first one is what the run awaits; an agent may ask several at once, they are put one by one. */
  readonly #questions: Question[] = [];
  #events = 0;
  #chars = 0;
  #parts = 0;
  #tokens: number | undefined;
  #since = 0;
  #worked = 0;

  constructor(agent: Agent, run: Run, input: Message[], log: RunLog, services: Services) {
    this.#agent = agent;
    this.run = run;
    this.log = log;
    this.#input = input;
    this.#services = services;
    this.#agentLog = services.logFor(run.run_id);
    this.#append({ type: 'run.created', run });
  }

  /** Runs the agent. Called once the run is durable, so that nothing is done for a run nobody knows. */
  start(): void {
    if (this.run.status !== 'created') return;
    this.#become('in-progress');
    const { registry, limits, now } = this.#services;
    const ready = (): Promise<void> | undefined => (this.log.backlog > limits.backlog ? this.log.flushed() : undefined);
    const source = { ready, pending: (work: Promise<unknown>) => this.#track(work) };
    const host = {
      run_id: this.run.run_id,
      session: this.#session(),
      registry,
      log: this.#agentLog,
      source,
      now,
      ask: (request: AwaitRequest) => this.#ask(request),
      use: (tokens: number) => {
        this.#tokens = (this.#tokens ?? 0) + tokens;
      },
    };
    const context = createContext(host, this.run.agent_name, this.#abort.signal);
    // takeUntil also ends a source that emits all it has while it is being subscribed to.
    defer(() => fromAgent(this.#agent.run(this.#input, context), source))
      .pipe(takeUntil(this.#stop))
      .subscribe({
        next: (output) => this.#output(output),
        error: (error) => this.#end('failed', errorOf(error)),
        complete: () => this.#end('completed'),
      });
  }

  /**
   * Takes the reply that the run awaits. The agent gets it when it is durable.
   * Returns the id of the event before `run.in-progress`, where a reader of what follows begins.
   * @throws RivuletError `not_awaiting`, `other_await`
   */
  resume(reply: AwaitResume): number {
    const [question] = this.#questions;
    if (this.run.status !== 'awaiting' || question === undefined) {
      throw fail('not_awaiting', this.run.run_id, this.run.status);
    }
    const before = this.log.row.last;
    this.#questions.shift();
    this.#become('in-progress');
    this.log.flushed().then(
      () => {
        question.subscriber.next(reply);
        question.subscriber.complete();
        this.#askNext();
      },
      () => undefined, // the log has told the engine, which calls lost()
    );
    return before;
  }

  /**
   * Cancels: tells the agent through its signal, unsubscribes, and ends the run when the agent has
   * stopped, at the latest after the deadline.
   * @throws RivuletError `already_final`
   */
  cancel(): void {
    if (isFinal(this.run.status)) throw fail('already_final', this.run.run_id, this.run.status);
    if (this.run.status === 'cancelling') return;
    this.#become('cancelling');
    this.#tearDown(new Error('the run was cancelled'));
    void this.#stopped().then(() => {
      if (this.log.failure === undefined) this.#become('cancelled');
    });
  }

  /** Ends the run because the server stops. */
  interrupt(): void {
    if (this.run.status === 'cancelling') this.#become('cancelled');
    else this.#end('failed', fail('run_interrupted').toJSON());
  }

  /** The store refused or failed: nothing can be written any more, so nothing may go on. */
  lost(error: unknown): void {
    this.#agentLog.error(`stopped: ${error instanceof Error ? error.message : String(error)}`);
    this.#tearDown(new Error('the store failed'));
  }

  #output(output: AgentOutput): void {
    try {
      this.#services.toEvents(this.run, output, (event) => this.#emit(event));
    } catch (error) {
      this.#end('failed', errorOf(error));
    }
  }

  /** An event of the agent's: counted against the limits, folded, appended. */
  #emit(event: Event): void {
    const { limits } = this.#services;
    const line = encode(event);
    this.#events += 1;
    this.#chars += line.length;
    if (this.#events > limits.events) throw fail('output_limit', 'events', limits.events);
    if (this.#chars > limits.chars) throw fail('output_limit', 'characters', limits.chars);
    if (event.type === 'message.part') this.#parts += 1;
    fold(this.run, event);
    this.log.append(line);
  }

  #append(event: Event & { run: Run }): void {
    this.log.append(encode(event), this.run);
  }

  /** The only place where the status changes. */
  #become(status: RunStatus): void {
    const { run } = this;
    if (!canBecome(run.status, status)) throw new Error(`a run cannot go from ${run.status} to ${status}`);
    if (run.status === 'in-progress') this.#worked += performance.now() - this.#since;
    if (status === 'in-progress') this.#since = performance.now();
    run.status = status;
    if (status !== 'awaiting') delete run.await_request;
    if (isFinal(status)) run.finished_at = this.#services.now();
    if (status === 'cancelling') this.log.setStatus(status);
    else if (status !== 'created') this.#append({ type: `run.${status}`, run });
  }

  #end(status: 'completed' | 'failed', error?: ErrorBody): void {
    if (isFinal(this.run.status) || this.run.status === 'cancelling') return;
    if (status === 'completed') {
      // An agent that completes has given up on what it asked.
      this.#questions.length = 0;
      if (this.run.status === 'awaiting') this.#become('in-progress');
      closeMessage(this.run, (event) => this.#emit(event), this.#services.now);
    }
    if (error !== undefined) this.run.error = error;
    if (status === 'completed') {
      const said = [...this.#input, ...this.run.output];
      this.log.attach(this.#services.sessions.store(this.log.row.session_id, said));
    }
    this.log.attach({ ended: { tokens: this.#tokens ?? this.#parts, seconds: this.#seconds() } });
    this.#become(status);
    this.#tearDown(new Error('the run is over'));
  }

  /** Time at work: what a person takes to answer an await is not the agent's. */
  #seconds(): number {
    const now = this.run.status === 'in-progress' ? performance.now() - this.#since : 0;
    return (this.#worked + now) / 1000;
  }

  #tearDown(reason: Error): void {
    this.#questions.length = 0;
    try {
      this.#stop.next();
    } catch (error) {
      this.#agentLog.warn(`the agent threw while it was unsubscribed: ${String(error)}`);
    }
    this.#abort.abort(reason);
  }

  /** When the agent has stopped, or had its time to. */
  async #stopped(): Promise<void> {
    if (this.#pending.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#services.limits.cancelDeadline);
    });
    await Promise.race([Promise.all(this.#pending), deadline]);
    clearTimeout(timer);
  }

  #track(work: Promise<unknown>): void {
    this.#pending.add(work);
    void work.finally(() => this.#pending.delete(work));
  }

  #ask(request: AwaitRequest): Observable<AwaitResume> {
    return new Observable((subscriber) => {
      const question = { request, subscriber };
      this.#questions.push(question);
      if (this.#questions.length === 1) this.#askNext();
      return () => {
        const at = this.#questions.indexOf(question);
        if (at < 0) return;
        this.#questions.splice(at, 1);
        // Nobody waits for it any more (the agent raced it against a timer, say): the run goes on.
        if (at === 0 && this.run.status === 'awaiting') {
          this.#become('in-progress');
          this.#askNext();
        }
      };
    });
  }

  #askNext(): void {
    const [question] = this.#questions;
    if (question === undefined || this.run.status !== 'in-progress') return;
    closeMessage(this.run, (event) => this.#emit(event), this.#services.now);
    this.run.await_request = question.request;
    this.#become('awaiting');
  }

  #session() {
    const { sessions } = this.#services;
    const id = this.log.row.session_id;
    const { signal } = this.#abort;
    return {
      id,
      history: sessions.history(id, signal),
      // The caller knows what it stored; that is what the type parameter is for.
      state: <T>() => sessions.state(id, signal) as Promise<T | undefined>,
      setState: (value: unknown) => {
        this.log.attach(sessions.storeState(id, value));
        return this.log.flushed();
      },
    };
  }
}
