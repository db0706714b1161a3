import { Observable, type Observer, type Subscriber } from 'rxjs';
import type { Agent, AgentLog, AgentOutput } from '../../core/agent.ts';
import { errorOf, fail } from '../../core/errors.ts';
import { fromAgent } from '../../core/from-agent.ts';
import { isFinal } from '../../core/status.ts';
import type { Extras } from '../../core/store.ts';
import { closeMessage } from '../../core/to-events.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event } from '../../schema/event.ts';
import type { Message } from '../../schema/message.ts';
import type { AwaitResume, Run, RunStatus } from '../../schema/run.ts';
import type { RunLog } from '../log/run-log.ts';
import { Abort } from './abort.ts';
import { Answers } from './awaits.ts';
import { createContext } from './context.ts';
import { createHost } from './host.ts';
import { Pending } from './pending.ts';
import { type Change, Recorder } from './recorder.ts';
import { type JournalEntry, Replay } from './replay.ts';
import type { Services } from './services.ts';

/** An earlier life of the run: its events after the first one, and its journal. */
export interface Past {
  readonly lines: readonly string[];
  readonly journal: readonly JournalEntry[];
}

/**
 * One live run: subscribes to its agent once, and sees to it that of all the ways to end (completion, error,
 * cancel, a time that is over, the server's stop) the first one wins. It is the observer of what its agent says:
 * a chain of operators and callbacks costs each run, and each that waits, a dozen objects.
 */
export class Execution implements Observer<AgentOutput> {
  readonly log: RunLog;
  readonly durable: boolean;
  readonly #agent: Agent;
  readonly #input: Message[];
  readonly #services: Services;
  readonly #recorder: Recorder;
  #answers: Answers | undefined;
  readonly #pending = new Pending();
  readonly #abort = new Abort();
  #subscriber: Subscriber<AgentOutput> | undefined;
  #tokens: number | undefined;
  #since = performance.now();
  #worked = 0;
  /** What the recorder had heard when somebody last looked, and since when it is that. */
  #heard = 0;
  #heardAt = performance.now();
  #detached = false;

  /** With a past, the agent is led through it before the run goes on. */
  constructor(agent: Agent, run: Run, input: Message[], log: RunLog, services: Services, past?: Past) {
    this.#agent = agent;
    this.#input = input;
    this.log = log;
    this.durable = log.row.tier === 'durable';
    this.#services = services;
    this.#recorder = new Recorder(run, log, services.limits, services.now);
    if (past !== undefined) {
      const replies = {
        take: (reply: AwaitResume) => this.#asking().takeAgain(reply),
        answer: () => this.#asking().giveAgain(),
      };
      this.#recorder.replayWith(new Replay(1, past.lines, past.journal, replies));
    }
  }

  /**
   * Writes down that the run is new and in progress: one commit for both, and the next one is the agent's. Of a durable
   * run only the first, since it may yet be left to another process. Answers the line of the first event.
   */
  create(): string {
    const line = this.#recorder.created();
    if (!this.durable) this.#guard(() => this.#become('in-progress'));
    return line;
  }

  get run(): Run {
    return this.#recorder.run;
  }

  /** Whether the Run is not yet again what its log says. */
  get replaying(): boolean {
    return this.#recorder.replaying;
  }

  /** Milliseconds since the agent last said anything, as far as whoever asks now and then can tell. */
  silentFor(): number {
    const { heard } = this.#recorder;
    const now = performance.now();
    if (heard !== this.#heard) [this.#heard, this.#heardAt] = [heard, now];
    return now - this.#heardAt;
  }

  /** Milliseconds at work: what a person takes to answer an await is not the agent's. */
  get worked(): number {
    return this.#worked + (this.run.status === 'in-progress' ? performance.now() - this.#since : 0);
  }

  /** Runs the agent, once. Called when the run is durable, so that nothing is done for a run nobody knows. */
  start(): void {
    if (this.run.status === 'created' && !this.#detached) this.#guard(() => this.#become('in-progress'));
    // It may have been cancelled, or the server have begun to stop, while the run was written down.
    if (this.run.status !== 'in-progress' || this.#detached || this.#subscriber !== undefined) return;
    new Observable<AgentOutput>((subscriber) => {
      // At once, so that a source which emits all it has while it is being subscribed to can be ended too.
      this.#subscriber = subscriber;
      const host = createHost(this.#services, this.#recorder, this.#abort, this.#pending, {
        ask: (request) => this.#asking().questions.ask(request),
        use: (tokens) => {
          this.#tokens = (this.#tokens ?? 0) + tokens;
        },
      });
      const context = createContext(host, this.run.agent_name, this.#abort);
      return fromAgent(this.#agent.run(this.#input, context), host.source).subscribe(subscriber);
    }).subscribe(this);
    this.#guard(() => this.#recorder.proceed());
  }

  // Without `#guard`: a closure for each token costs as much as the token.
  next(output: AgentOutput): void {
    try {
      this.#services.toEvents(this.run, output, this.#emit);
      this.#recorder.proceed();
    } catch (error) {
      this.#end('failed', errorOf(error));
    }
  }

  error(error: unknown): void {
    this.#end('failed', errorOf(error));
  }

  complete(): void {
    this.#guard(() => this.#end('completed'));
  }

  /**
   * Takes the reply that the run awaits. The agent gets it when it is durable.
   * Returns the id of the event before `run.in-progress`, where a reader of what follows begins.
   * @throws RivuletError `not_awaiting`
   */
  resume(reply: AwaitResume, extras: Extras): number {
    const at = this.log.row.last;
    if (!this.#asking().take(reply, extras)) throw fail('not_awaiting', this.run.run_id, this.run.status);
    return at;
  }

  /**
   * Cancels: unsubscribes, tells the agent through its signal, and ends the run when the agent has
   * stopped, at the latest after the deadline.
   * @throws RivuletError `already_final`
   */
  cancel(): void {
    if (isFinal(this.run.status)) throw fail('already_final', this.run.run_id, this.run.status);
    if (this.run.status === 'cancelling') return;
    this.#become('cancelling');
    this.#tearDown('the run was cancelled');
    void this.#pending.settled(this.#services.limits.cancelDeadline).then(() => {
      if (!this.#detached && this.run.status === 'cancelling') this.#become('cancelled');
    });
  }

  /** Ends the run with an error that is not the agent's: a time is over, or the server stops. */
  failWith(error: ErrorBody): void {
    if (this.run.status === 'cancelling') this.#become('cancelled');
    else this.#end('failed', error);
  }

  /** Lets go of the agent and leaves the run as it is: it stays in the store, to be re-entered. */
  detach(): void {
    this.#detached = true;
    this.#tearDown('the run leaves this process');
    // To leave in good order is not to have failed.
    if (this.log.row.attempts > 0) this.log.change({ attempts: 0 });
    this.log.detach();
  }

  /** The store failed, or the run is another process's: nothing can be written any more, so nothing may go on. */
  lost(error: Error): void {
    if (this.log.detached) this.#agentLog().info('the run is no longer in the hands of this process');
    else this.#agentLog().error(`stopped: ${error.message}`);
    this.#tearDown(this.log.detached ? 'the run is no longer in the hands of this process' : 'the store failed');
  }

  // Most agents never ask.
  #asking(): Answers {
    this.#answers ??= new Answers({
      recorder: this.#recorder,
      durable: this.durable,
      over: () => this.#detached || isFinal(this.run.status),
      guard: (work) => this.#guard(work),
      become: (status, change) => this.#become(status, change),
      close: () => this.#close(),
    });
    return this.#answers;
  }

  readonly #emit = (event: Event): void => this.#recorder.emit(event);

  // Whatever goes wrong in the run's own business ends this run, and no other.
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#end('failed', errorOf(error));
    }
  }

  #become(status: RunStatus, change?: Change): void {
    if (this.run.status === 'in-progress') this.#worked += performance.now() - this.#since;
    if (status === 'in-progress') this.#since = performance.now();
    this.#recorder.become(status, change);
  }

  #agentLog(): AgentLog {
    return this.#services.logFor(this.run.run_id);
  }

  #close(): void {
    closeMessage(this.run, this.#emit, this.#services.now);
  }

  #end(status: 'completed' | 'failed', error?: ErrorBody): void {
    if (isFinal(this.run.status) || this.run.status === 'cancelling' || this.#detached) return;
    if (status === 'completed') {
      // An agent that completes has given up on what it asked.
      this.#answers?.questions.clear();
      if (this.run.status === 'awaiting') this.#become('in-progress');
      this.#close();
      const said = [...this.#input, ...this.run.output];
      this.log.attach(this.#services.sessions.store(this.log.row.session_id, this.run.run_id, said));
    }
    this.log.attach({ ended: { tokens: this.#tokens ?? this.#recorder.parts, seconds: this.worked / 1000 } });
    this.#become(status, error && { error });
    this.#tearDown('the run is over');
  }

  #tearDown(reason: string): void {
    this.#answers?.questions.clear();
    try {
      // Before the signal: what the agent's work says of being aborted is nobody's business any more.
      this.#subscriber?.unsubscribe();
    } catch (error) {
      this.#agentLog().warn(`the agent threw while it was unsubscribed: ${String(error)}`);
    }
    this.#abort.abort(reason);
  }
}
