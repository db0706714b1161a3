import type { Observer } from 'rxjs';
import type { Agent, AgentLog, AgentOutput } from '../../core/agent.ts';
import { errorOf, fail, type RivuletError } from '../../core/errors.ts';
import { outputOf } from '../../core/from-agent.ts';
import { copyMessage } from '../../core/messages.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Extras } from '../../core/store.ts';
import { closeMessage } from '../../core/to-events.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event } from '../../schema/event.ts';
import type { Message } from '../../schema/message.ts';
import type { AwaitResume, Run, RunStatus } from '../../schema/run.ts';
import type { RunLog } from '../log/run-log.ts';
import { Abort } from './abort.ts';
import { AgentSubscriber } from './agent-subscriber.ts';
import { Awaits } from './awaits.ts';
import { createContext } from './context.ts';
import { failureOf } from './failure.ts';
import { Feed } from './feed.ts';
import { createHost } from './host.ts';
import { Unstarted } from './lazy.ts';
import { PendingWork } from './pending-work.ts';
import { Recorder, type StatusChange } from './recorder.ts';
import { ReorderBuffer } from './reorder-buffer.ts';
import { type Recording, Replay } from './replay.ts';
import type { ExecutionServices } from './services.ts';
import type { Steps } from './steps.ts';
import { ignored, reported } from './unhandled.ts';

/**
 * `open` runs the agent, and takes what it does; in every other state nothing of the agent begins or counts.
 * `cancelling` waits for the agent to stop, `final` has its last event, `left` goes on elsewhere, `lost` cannot write.
 */
type State = 'open' | 'cancelling' | 'final' | 'released' | 'abandoned';

/** Output that waits for its turn in a replay; more shows that the agent does something else. */
const maxReordered = 1_000;
/** Milliseconds without progress after which early output shows the same. */
const reorderTimeout = 1_000;

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
  readonly #services: ExecutionServices;
  readonly #recorder: Recorder;
  /** Of a durable run. */
  readonly #feed: Feed | undefined;
  /** While the run is led through its past. */
  #reorderBuffer: ReorderBuffer | undefined;
  #awaits: Awaits | undefined;
  #steps: Steps | undefined;
  readonly #pending = new PendingWork();
  readonly #unstarted = new Unstarted();
  readonly #abort = new Abort((error) => this.#warn('a listener of the signal failed', error));
  #state: State = 'open';
  #subscriber: AgentSubscriber | undefined;
  #tokens: number | undefined;
  #since = performance.now();
  #worked = 0;
  /** What the recorder had heard when `silentFor` was last called, and since when it is that. */
  #lastProgress = 0;
  #lastProgressAt = performance.now();

  /** With a past, the agent is led through it before the run goes on. */
  constructor(agent: Agent, run: Run, input: Message[], log: RunLog, services: ExecutionServices, past?: Recording) {
    this.#agent = agent;
    this.#input = input;
    this.log = log;
    this.durable = log.row.tier === 'durable';
    this.#services = services;
    // A pinned run is executed once: what there is of it is its creation.
    const replay = this.durable && past !== undefined ? new Replay(1, past) : undefined;
    this.#recorder = new Recorder(run, log, services.limits, services.now, replay);
    if (!this.durable) return;
    if (past !== undefined) {
      this.#reorderBuffer = new ReorderBuffer();
      for (const { ms = 0 } of past.journal) if (ms > this.#worked) this.#worked = ms;
    }
    this.#feed = new Feed(
      {
        recorder: this.#recorder,
        worked: () => this.worked,
        outside: services.outside,
        fail: this.#fail,
        recordReordered: () => this.#recordReordered(),
      },
      past?.journal,
    );
  }

  /**
   * Writes down that the run is new and in progress: one commit for both, and the next one is the agent's. Of a durable
   * run only the first, since it may yet be left to another process. Answers the line of the first event.
   */
  recordCreation(): string {
    const line = this.#recorder.recordCreated();
    if (!this.durable) this.#guard(() => this.#changeStatus('in-progress'));
    return line;
  }

  get run(): Run {
    return this.#recorder.run;
  }

  /** Whether the Run is not yet again what its log says. */
  get replaying(): boolean {
    return this.#recorder.replay !== undefined;
  }

  /** Whether the run only waits for a reply: a process that holds it does nothing. */
  get onlyAwaits(): boolean {
    return this.run.status === 'awaiting' && !this.replaying && this.#feed?.hasSteps !== true;
  }

  /** Resolves when the run is no longer led through its past. */
  async whenLive(): Promise<void> {
    while (this.replaying && this.#state === 'open') await this.#feed?.whenDelivered();
  }

  /** Milliseconds since the run last got on, as far as calls of this can tell. */
  idleFor(): number {
    const { progress } = this.#recorder;
    const now = performance.now();
    if (progress !== this.#lastProgress) [this.#lastProgress, this.#lastProgressAt] = [progress, now];
    return now - this.#lastProgressAt;
  }

  /** Milliseconds at work in all lives of the run: what a person takes to answer an await is not the agent's. */
  get worked(): number {
    return this.#worked + (this.run.status === 'in-progress' ? performance.now() - this.#since : 0);
  }

  /** The error that ends the run now, where one of its times is over; to be asked now and then. `now` is a date-time. */
  timeoutError(now: string): ErrorBody | undefined {
    if (this.#state !== 'open') return undefined;
    const { runTimeout, idleTimeout } = this.#services.limits;
    const { status, await_request } = this.run;
    const replaying = this.replaying;
    const silent = this.idleFor();
    if (runTimeout > 0 && status === 'in-progress' && this.worked > runTimeout)
      return fail('run_timeout', runTimeout / 1000).toJSON();
    if (replaying) {
      const waits = this.#reorderBuffer !== undefined && this.#reorderBuffer.size > 0 && silent > reorderTimeout;
      return waits || (idleTimeout > 0 && silent > idleTimeout) ? this.#diverged('nothing').toJSON() : undefined;
    }
    if (status === 'in-progress' && idleTimeout > 0 && silent > idleTimeout)
      return fail('idle_timeout', idleTimeout / 1000).toJSON();
    const expires = status === 'awaiting' ? await_request?.expires_at : undefined;
    return expires !== undefined && expires <= now ? fail('await_timeout').toJSON() : undefined;
  }

  /** Runs the agent, once. Called when the run is durable, so that no work is done for a run that a crash could still undo. */
  start(): void {
    if (this.#state !== 'open' || this.#subscriber !== undefined) return;
    if (this.run.status === 'created') this.#guard(() => this.#changeStatus('in-progress'));
    // It may have been cancelled, or the server have begun to stop, while the run was written down.
    if (this.run.status !== 'in-progress') return;
    // At once, so that a source which emits all it has while it is being subscribed to can be ended too.
    this.#subscriber = new AgentSubscriber(this, this.#onTeardownError);
    this.#services.outside(() => this.#subscribe());
    this.#feed?.agentActed();
  }

  #subscribe(): void {
    const { agent_name } = this.run;
    const host = createHost(this.#services, {
      recorder: this.#recorder,
      abort: this.#abort,
      pending: this.#pending,
      unstarted: this.#unstarted,
      feed: this.#feed,
      reorderBuffer: this.#reorderBuffer,
      fail: this.#fail,
      ask: (request) => this.#lazyAwaits().ask(request),
      use: (tokens) => {
        this.#tokens = (this.#tokens ?? 0) + tokens;
      },
    });
    this.#steps = host.steps;
    const subscriber = this.#subscriber;
    try {
      // A copy: what the run was made with is what a later life, the history and other readers get.
      const output = this.#agent.run(this.#input.map(copyMessage), createContext(host, agent_name, this.#abort));
      outputOf(agent_name, output, host.source).subscribe(subscriber);
    } catch (error) {
      subscriber?.error(error);
    }
  }

  // Without `#guard`: a closure for each token costs as much as the token.
  next(output: AgentOutput): void {
    if (this.#state !== 'open') return;
    try {
      if (this.#reorderBuffer === undefined) this.#services.toEvents(this.run, output, this.#emit);
      else this.#replayOutput(this.#reorderBuffer, output);
    } catch (error) {
      this.#fail(error);
    }
  }

  error(error: unknown): void {
    this.#fail(error);
  }

  complete(): void {
    if (this.#state !== 'open') return;
    this.#guard(() => {
      this.#recordReordered();
      const replay = this.#recorder.replay;
      if (replay !== undefined && !replay.live) throw this.#diverged('its end');
      this.#awaits?.forget();
      for (const event of this.#closing()) this.#emit(event);
      const said = [...this.#input, ...this.run.output];
      this.log.attach(this.#services.sessions.store(this.log.row.session_id, this.run.run_id, said));
      this.#finish('completed');
    });
  }

  /**
   * Takes the reply that the run awaits; with an `id`, only where it is that of the open question. The agent gets it when
   * it is durable. Returns the id of the event before `run.in-progress`, where a reader of what follows begins.
   * @throws RivuletError `not_awaiting`, `question_mismatch`
   */
  resume(reply: AwaitResume, extras: Extras): number {
    const at = this.log.row.last;
    if (this.#state !== 'open') throw fail('not_awaiting', this.run.run_id, this.run.status);
    this.#lazyAwaits().reply(reply, extras);
    return at;
  }

  /**
   * Cancels: unsubscribes, tells the agent through its signal, and ends the run when the agent has
   * stopped, at the latest after the deadline.
   * @throws RivuletError `already_final`, `conflict`
   */
  cancel(): void {
    if (this.#state === 'cancelling') return;
    if (isFinal(this.run.status)) throw fail('already_final', this.run.run_id, this.run.status);
    if (this.#state !== 'open') throw fail('conflict', this.run.run_id);
    this.#changeStatus('cancelling');
    this.#close('cancelling', 'the run was cancelled');
    void this.#pending.stopped(this.#services.limits.cancelGrace).then(() => this.#cancelled());
  }

  /** Ends the run with an error that is not the agent's: a time is over, or the server stops. */
  failWith(error: ErrorBody): void {
    if (this.#state === 'cancelling') this.#cancelled();
    else this.#end(error);
  }

  /** Lets go of the agent and leaves the run as it is: it stays in the store, to be re-entered. */
  release(): void {
    // A clean hand-over does not count as a recovery attempt.
    if (this.log.row.attempts > 0) this.log.change({ attempts: 0 });
    this.#close('released', 'the run leaves this process');
    this.log.release();
  }

  /** The store failed, or the run is another process's: nothing can be written any more, so nothing may go on. */
  abandon(error: Error): void {
    const left = this.log.goesOnElsewhere;
    if (left) this.#log().info('the run is no longer in the hands of this process');
    else this.#log().error(`stopped: ${error.message}`);
    this.#close('abandoned', left ? 'the run is no longer in the hands of this process' : 'the store failed');
  }

  // Most agents never ask.
  #lazyAwaits(): Awaits {
    this.#awaits ??= new Awaits({
      recorder: this.#recorder,
      feed: this.#feed,
      worked: () => this.worked,
      outside: this.#services.outside,
      fail: this.#fail,
      changeStatus: (status, change) => this.#changeStatus(status, change),
      closing: () => this.#closing(),
    });
    return this.#awaits;
  }

  readonly #emit = (event: Event): void => this.#recorder.emit(event);

  // Whatever goes wrong in the run's own business ends this run, and no other.
  readonly #fail = (error: unknown): void => this.#end(errorOf(error), error);

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
  }

  #changeStatus(status: RunStatus, change?: StatusChange): void {
    if (this.run.status === 'in-progress') this.#worked += performance.now() - this.#since;
    if (status === 'in-progress') this.#since = performance.now();
    this.#recorder.changeStatus(status, change);
  }

  /** What the agent emits while it is led through its past: it is recorded when the log has it next. */
  #replayOutput(early: ReorderBuffer, output: AgentOutput): void {
    early.offer(output, this.#tryRecord);
    this.#feed?.agentActed();
    if (early.size === 0) return;
    // Where no other branch is known, there is none that the log's next event could come from.
    const alone = !early.hasOpenCalls && this.#feed?.hasSteps !== true && this.#awaits?.waiting !== true;
    if (alone || early.size > maxReordered) throw this.#diverged('nothing');
  }

  /** Records what came early, as far as it is its turn now. */
  #recordReordered(): void {
    this.#reorderBuffer?.retry(this.#tryRecord);
    this.#awaits?.next();
    if (this.#recorder.replay === undefined) this.#reorderBuffer = undefined;
  }

  readonly #tryRecord = (output: AgentOutput): boolean => {
    const events = this.#eventsOf(output);
    if (!this.#recorder.fits(events)) return false;
    for (const event of events) this.#recorder.emit(event);
    return true;
  };

  #eventsOf(output: AgentOutput): Event[] {
    const events: Event[] = [];
    this.#services.toEvents(this.run, output, (event) => void events.push(event));
    return events;
  }

  /** The agent does something else than it did: `did` says what, where it is not output that came too early. */
  #diverged(did: string): RivuletError {
    const early = this.#reorderBuffer?.firstOutput;
    const got = early === undefined ? did : this.#eventsOf(early);
    return this.#recorder.replay?.diverged(got) ?? fail('replay_diverged', 'the end', 'nothing', did);
  }

  #log(): AgentLog {
    return this.#services.logFor(this.run.run_id);
  }

  #warn(what: string, error: unknown): void {
    this.#log().warn(`${what}: ${errorOf(error).message}`);
  }

  readonly #onTeardownError = (error: unknown): void => this.#warn('the agent threw while it was unsubscribed', error);

  /** The event that completes the message that is open, if one is. */
  #closing(): Event[] {
    const events: Event[] = [];
    closeMessage(this.run, (event) => void events.push(event), this.#services.now);
    return events;
  }

  #cancelled(): void {
    if (this.#state !== 'cancelling') return;
    this.#state = 'final';
    this.#changeStatus('cancelled');
  }

  #end(error: ErrorBody, thrown?: unknown): void {
    if (this.#state !== 'open') return;
    this.#finish('failed', error);
    this.#log().warn(failureOf(this.run, error, thrown));
  }

  #finish(status: 'completed' | 'failed', error?: ErrorBody): void {
    this.log.attach({ ended: { tokens: this.#tokens ?? this.#recorder.parts, seconds: this.worked / 1000 } });
    this.#changeStatus(status, error && { error });
    this.#close('final', 'the run is over');
    this.#unstarted.report(this.run.run_id, () => this.#log());
  }

  /** The one end of an execution. From here on nothing of the agent's begins, and nothing that it does counts. */
  #close(state: Exclude<State, 'open'>, reason: string): void {
    const before = this.#state;
    // What is final stays so; of two other ends the last one counts, since a run that leaves cannot be cancelled here.
    if (before !== 'final') this.#state = state;
    if (before !== 'open') return;
    this.#abort.close(reason);
    this.#feed?.close();
    this.#awaits?.close();
    // Before the signal: errors caused by the abort are ignored.
    this.#subscriber?.unsubscribe();
    if (this.#awaits !== undefined || this.#steps !== undefined) {
      // Most runs wait for nothing, and an error is the dearest object there is.
      const refused = reported(fail('run_not_open', 'What the agent waits for', reason), ignored);
      this.#awaits?.refuse(refused);
      this.#steps?.close(refused);
    }
    this.#abort.abort(reason);
  }
}
