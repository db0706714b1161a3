import type { Observer } from 'rxjs';
import type { Agent, AgentLog, AgentOutput, Continues } from '../../core/agent.ts';
import { errorOf, fail, isOwnError, type RivuletError } from '../../core/errors.ts';
import { copyMessage } from '../../core/messages.ts';
import type { Extras } from '../../core/ports/run-store.ts';
import { messagesOf, type RunInput, requestOf } from '../../core/request.ts';
import { isFinal, isSettled } from '../../core/run-state.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event, GenericEvent } from '../../schema/event.ts';
import type { AwaitResume, Run, RunStatus } from '../../schema/run.ts';
import { inAgent } from '../agents/agent-watch.ts';
import type { EndedRun } from '../engine-events.ts';
import { cancelLine } from '../log/journal.ts';
import type { RunLog } from '../log/run-log.ts';
import { ignored, reported } from '../unhandled.ts';
import { Awaits } from './awaits.ts';
import { createContext } from './context.ts';
import type { ExecutionServices } from './execution-services.ts';
import { failureOf } from './failure.ts';
import { Feed } from './feed.ts';
import { outputOf } from './from-agent.ts';
import { createHost } from './host.ts';
import { Unstarted } from './lazy.ts';
import { AgentSubscriber } from './pair-joiner.ts';
import { PendingWork } from './pending-work.ts';
import { Recorder, type StatusChange } from './recorder.ts';
import { ReorderBuffer } from './reorder-buffer.ts';
import { type Recording, Replay } from './replay.ts';
import { type Closing, RunSignal } from './run-signal.ts';
import { RunTrace } from './run-trace.ts';
import { type Output, Scope } from './scope.ts';
import type { Steps } from './steps.ts';
import { RunTimes } from './times.ts';
import { RunTokens } from './tokens.ts';

/**
 * One live run. It subscribes to its agent once, and is itself the observer of the agent's output. Of all the ways to end
 * (completion, error, cancel, time-out, the server's stop) the first one wins. Once the execution has closed (`Closing`), the
 * agent's output is ignored, and the agent can start no work.
 */
export class Execution implements Observer<AgentOutput>, Output {
  readonly log: RunLog;
  readonly durable: boolean;
  readonly #agent: Agent;
  readonly #input: RunInput;
  readonly #services: ExecutionServices;
  readonly #recorder: Recorder;
  /** Of a durable run. */
  readonly #feed: Feed | undefined;
  /** During a replay. */
  #reorderBuffer: ReorderBuffer | undefined;
  #awaits: Awaits | undefined;
  #steps: Steps | undefined;
  readonly #pending = new PendingWork();
  readonly #unstarted = new Unstarted();
  readonly #runSignal = new RunSignal((error) => this.#warn('a listener of the signal failed', error));
  #subscriber: AgentSubscriber | undefined;
  readonly #tokens: RunTokens;
  #failure: string | undefined;
  readonly #times: RunTimes;
  #trace: RunTrace | undefined;

  /** With a recording, the agent replays it before the run goes on. */
  constructor(agent: Agent, run: Run, input: RunInput, log: RunLog, shared: ExecutionServices, recording?: Recording) {
    this.#agent = agent;
    this.#input = input;
    this.log = log;
    this.durable = log.row.tier === 'durable';
    this.#services = shared;
    // A run that is not durable has only one execution: its log has no more than the first event.
    const replay = this.durable && recording !== undefined ? new Replay(1, recording) : undefined;
    this.#recorder = new Recorder(run, log, shared.limits, shared.now, replay);
    this.#tokens = new RunTokens(this.#recorder, shared, this.#fail);
    this.#times = new RunTimes(this.#recorder, this.durable ? recording?.journal : undefined);
    if (!this.durable) return;
    if (recording !== undefined) this.#reorderBuffer = new ReorderBuffer(this.#recorder, shared.toEvents);
    this.#feed = new Feed({
      recorder: this.#recorder,
      dispatcher: shared.dispatcher,
      times: this.#times,
      tokens: this.#tokens,
      outside: this.#inTrace,
      fail: this.#fail,
      onQuietReplay: () => this.#onQuietReplay(),
      onLive: () => this.#trace?.onStatus(this.run.status),
      onCancelled: (reason) => {
        this.#recorder.repeatCancel(reason);
        this.#cleanUp();
      },
    });
  }

  /**
   * Records that the run is created and in progress, in one commit. A durable run is only created here, because another
   * process may take it over before its agent has begun. Returns the line of the first event.
   */
  recordCreation(): string {
    const line = this.#recorder.recordCreated();
    if (!this.durable) this.#guard(() => this.#changeStatus('in-progress'));
    return line;
  }

  get run(): Run {
    return this.#recorder.run;
  }

  get #isOpen(): boolean {
    return this.#runSignal.closing === undefined;
  }

  /** Whether the run is cancelled, and its agent may clean up. */
  get #cleansUp(): boolean {
    return this.#runSignal.closing?.as === 'cancelled';
  }

  /** Whether the run is still replaying its recording. */
  get replaying(): boolean {
    return this.#recorder.replay !== undefined;
  }

  /** Whether the run only waits for a reply, or sleeps. Its agent has to be quiet. */
  mayLeaveMemory(): boolean {
    if (this.#feed === undefined || this.replaying || !this.#isOpen) return false;
    // Such as the time at which it wakes, which is not journaled so far.
    if (this.#feed.backlog > 0) return false;
    const { work } = this.#feed;
    work.quiet();
    return work.onlyQuestions && (this.run.status === 'awaiting' || work.asleep);
  }

  /** When the agent of a durable run wakes that sleeps: a date-time. */
  get wakesAt(): string | undefined {
    const at = this.#feed?.work.wakesAt;
    return at === undefined ? undefined : new Date(at).toISOString();
  }

  /** Parts that this execution has added to the log. */
  get parts(): number {
    return this.#recorder.parts - this.#recorder.replayedParts;
  }

  /** What the event `runEnded` reports of the run. */
  get ended(): EndedRun {
    return this.#times.ended(this.#tokens, this.#failure, this.#trace?.span.ids);
  }

  /** Resolves when the replay is over. The agent of a cancelled run replays as well, and then cleans up. */
  async whenLive(): Promise<void> {
    while (this.replaying && (this.#isOpen || this.#cleansUp)) await this.#feed?.whenDelivered();
  }

  /** Measures the time without progress. Called periodically. */
  sweep(): void {
    this.#times.sweep(this.#services.limits);
  }

  /** Milliseconds without progress, as of the last sweep. */
  get idle(): number {
    return this.#times.idle;
  }

  /**
   * Whether no other node can have taken the run, which may then have gone on there. Otherwise this process tries to take it
   * again, so that a later call knows.
   */
  holdsOrTakesAgain(): boolean {
    if (this.#feed === undefined || this.#feed.hold.holds) return true;
    void this.#feed.hold.whenHeld();
    return false;
  }

  /** The error that ends the run, where one of its time-outs is over as of the last sweep. `now` is a date-time. */
  timeoutError(now: string): ErrorBody | undefined {
    if (!this.#isOpen) return undefined;
    const { limits } = this.#services;
    const tooLong = this.#times.workError(limits);
    if (tooLong !== undefined || !this.replaying) return tooLong ?? this.#times.waitError(limits, now);
    // A replay is stuck. A cancelled run waits no longer for its agent than it does when it is live.
    const most = this.#isCancelled ? limits.cancelGrace : limits.idleTimeout;
    return most > 0 && this.idle > most ? this.#diverged('nothing').toJSON() : undefined;
  }

  /** Subscribes to the agent, once. Called when the run is durable: a crash must not undo a run that has worked. */
  start(): void {
    if (!this.#isOpen || this.#subscriber !== undefined) return;
    const { traces } = this.#services;
    if (traces !== undefined)
      this.#trace = new RunTrace(traces, this.#agent.manifest, messagesOf(this.#input), this.#recorder);
    if (this.run.status === 'created') this.#guard(() => this.#changeStatus('in-progress'));
    // The run may have been cancelled, or released by a stopping server, while its creation was committed.
    if (this.run.status !== 'in-progress') return;
    // Before the subscription, so that a source that emits synchronously can be unsubscribed as well.
    this.#subscriber = new AgentSubscriber(this, this.#onTeardownError);
    this.#inTrace(() => this.#subscribe());
    this.#feed?.agentActed();
  }

  #subscribe(): void {
    const { agent_name } = this.run;
    const host = createHost(this.#services, {
      recorder: this.#recorder,
      runSignal: this.#runSignal,
      pending: this.#pending,
      unstarted: this.#unstarted,
      feed: this.#feed,
      reorderBuffer: this.#reorderBuffer,
      fail: this.#fail,
      ask: (request) => this.#lazyAwaits().ask(request),
      record: (event, inWork) => this.#recordBeside(event, inWork),
      request: requestOf(this.#input),
      use: this.#tokens.add,
    });
    this.#steps = host.steps;
    const subscriber = this.#subscriber;
    try {
      // A copy: a replay, the history and other readers get the input as the client sent it.
      const context = createContext(host, agent_name, this.#runSignal, this.#trace?.span, Scope.ofRun(this));
      const output = this.#agent.run(messagesOf(this.#input).map(copyMessage), context);
      outputOf(agent_name, output, host.source).subscribe(subscriber);
    } catch (error) {
      subscriber?.error(error);
    }
  }

  next(output: AgentOutput): void {
    this.#feed?.work.emitted();
    this.#record(output);
  }

  #record(output: AgentOutput): void {
    if (!this.#isOpen || this.#recorder.sealed) return;
    try {
      if (this.#reorderBuffer === undefined) this.#services.toEvents(this.run, output, this.#emit);
      else this.#replayOutput(this.#reorderBuffer, output);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Records an event beside the agent's output. A replay does not repeat the events of a step's work. */
  #recordBeside(event: GenericEvent, inWork: boolean): void {
    if (!this.#isOpen || this.#recorder.sealed) return;
    if (inWork) this.#feed?.journalBeside();
    this.#record(event);
  }

  get emitted(): number {
    return this.#recorder.parts;
  }

  /** Ends the message that is open. What follows begins a new one. */
  interrupt(): void {
    if (!this.#isOpen || this.#recorder.sealed) return;
    for (const event of this.#recorder.closing('interrupted')) this.#emit(event);
  }

  error(error: unknown): void {
    this.#fail(error);
  }

  complete(): void {
    if (!this.#isOpen) return;
    if (this.#isCancelled) return void this.#cancelled();
    this.#guard(() => {
      this.#recordReordered();
      const replay = this.#recorder.replay;
      if (replay !== undefined && !replay.live) throw this.#diverged('its end');
      this.#awaits?.forget();
      for (const event of this.#recorder.closing()) this.#emit(event);
      this.#finish('completed');
    });
  }

  /**
   * Accepts the reply to the open question. A reply with an `id` has to name that question. The agent gets the reply when it is
   * durable. Returns the cursor for the events that follow. `requested` is what the request of the reply is in the traces.
   * @throws RivuletError `not_awaiting`, `question_mismatch`
   */
  resume(reply: AwaitResume, extras: Extras, requested: string | null = null): number {
    const at = this.log.row.last;
    if (!this.#isOpen) throw fail('not_awaiting', this.run.run_id, this.run.status);
    this.#trace?.onReply(requested);
    try {
      this.#lazyAwaits().reply(reply, extras);
    } finally {
      this.#trace?.onReply(null);
    }
    return at;
  }

  /**
   * Cancels the run, and stops its agent. The run ends when the agent has stopped, at the latest after `cancelGrace`.
   * The final event has the reason.
   * @throws RivuletError `already_final`, `conflict`
   */
  cancel(reason?: string): void {
    if (this.#isCancelled) return;
    if (isFinal(this.run.status)) throw fail('already_final', this.run.run_id, this.run.status);
    if (!this.#isOpen) throw fail('conflict', this.run.run_id);
    // Its agent first comes to where the run is, so that it knows what to clean up.
    if (this.replaying) {
      this.#recorder.cancelAfterReplay(reason);
      this.#feed?.agentActed();
      return;
    }
    this.#changeStatus('cancelling', reason === undefined ? undefined : { cancel_reason: reason });
    if (this.#feed === undefined) {
      // For the node that ends the run, where this one dies before.
      if (reason !== undefined) this.#recorder.journal(cancelLine(this.log.row.last, reason));
      this.#cleanUp();
      return;
    }
    this.#feed.cancel(reason);
    // The agent cleans up only when the cancel is durable. After a crash before that, the run goes on.
    this.log.flushed().then(
      () => this.#isOpen && this.#cleanUp(),
      () => undefined, // the log reports its failure to the engine, which drops the execution
    );
  }

  /** Whether the run is cancelled, and not final so far. */
  get #isCancelled(): boolean {
    return this.log.row.status === 'cancelling';
  }

  /** Stops the agent, and gives it `cancelGrace` to clean up. Also where a replay has come to the cancel of the run. */
  #cleanUp(): void {
    this.#feed?.cleanUp();
    this.#close({ as: 'cancelled', reason: 'the run was cancelled' });
    void this.#pending
      .stopped(this.#services.limits.cancelGrace, () => this.#feed?.whenIdle())
      .then(() => this.#cancelled());
  }

  /** Ends the run with an error that is not the agent's: a time-out, or the server's stop. */
  failWith(error: ErrorBody): void {
    if (this.#isCancelled) this.#cancelled();
    else this.#end(error);
  }

  /**
   * From now on no work of the agent begins. Resolves when the steps that run have ended and are journaled, and for a cancelled
   * run when its agent has cleaned up.
   */
  async drained(): Promise<void> {
    if (this.#isOpen) await this.#feed?.drained();
    if (this.#isCancelled) await new Promise<void>((resolve) => this.log.onClosed(resolve));
  }

  /** Hands the run back to the store, to be re-entered later. */
  release(): void {
    // A clean hand-over does not count as a recovery attempt.
    if (this.log.row.attempts > 0) this.log.change({ attempts: 0 });
    // First: the agent's own code cannot keep the run here.
    this.log.release();
    this.#close({ as: 'left', reason: 'the run leaves this process', continues: true });
  }

  /**
   * The store failed or the execution is fenced, so nothing can be written any more. The agent of a durable run is dropped:
   * the run may go on with it on another node. Any other agent is stopped.
   */
  abandon(error: Error, continues: Continues): void {
    const fenced = this.log.outcome === 'fenced';
    if (fenced) this.#log().info('this process no longer owns the run');
    else this.#log().error(`stopped, as the store did not take its events: ${errorOf(error.cause).message}`);
    const reason = fenced ? 'this process no longer owns the run' : 'the store failed';
    this.#close({ as: this.durable ? 'left' : 'ended', reason, continues });
  }

  // Made for the first question: most agents ask none.
  #lazyAwaits(): Awaits {
    this.#awaits ??= new Awaits({
      recorder: this.#recorder,
      feed: this.#feed,
      outside: this.#inTrace,
      fail: this.#fail,
      changeStatus: (status, change) => this.#changeStatus(status, change),
    });
    return this.#awaits;
  }

  readonly #emit = (event: Event): void => this.#recorder.emit(event);

  // An error in the handling of a run ends that run and no other.
  readonly #fail = (error: unknown): void => this.#end(errorOf(error), error);

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
  }

  #changeStatus(status: RunStatus, change?: StatusChange): void {
    this.#times.onStatusChange(status);
    this.#tokens.onStatusChange(status);
    this.#recorder.changeStatus(status, isSettled(status) ? { ...change, ...this.#tokens.reported } : change);
    this.#trace?.onStatus(status);
  }

  /** Runs work outside of other async contexts, and inside of the run's span. */
  readonly #inTrace = (work: () => void): void => {
    const { run_id, agent_name } = this.run;
    const span = this.#trace?.span;
    const call = (): void => inAgent(agent_name, run_id, work);
    this.#services.outside(span === undefined ? call : () => span.within(call));
  };

  /** Matches the agent's output with the log during a replay; output that comes too early is buffered. */
  #replayOutput(buffer: ReorderBuffer, output: AgentOutput): void {
    buffer.offer(output);
    this.#feed?.agentActed();
    // As many as the run may emit at all. More of them show that the agent has diverged.
    const { events, chars } = this.#services.limits;
    if ((events > 0 && buffer.size > events) || (chars > 0 && buffer.chars > chars)) throw this.#diverged('nothing');
  }

  /** The agent is quiet during a replay. Without another branch, nothing could emit the event that the log has next. */
  #onQuietReplay(): void {
    this.#recordReordered();
    const buffer = this.#reorderBuffer;
    if (buffer === undefined || buffer.size === 0) return;
    if (!buffer.hasOpenCalls && this.#feed?.hasSteps !== true && this.#awaits?.waiting !== true)
      throw this.#diverged('nothing');
  }

  /** Records buffered output that is next in the log. */
  #recordReordered(): void {
    this.#reorderBuffer?.retry();
    this.#awaits?.next();
    if (this.#recorder.replay === undefined) this.#reorderBuffer = undefined;
  }

  /** The error of an agent that diverged from its recording. `did` names what it did, unless output is buffered. */
  #diverged(did: string): RivuletError {
    const got = this.#reorderBuffer?.firstEvents ?? did;
    return this.#recorder.replay?.diverged(got) ?? fail('replay_diverged', 'the end', 'nothing', did);
  }

  /** How an error shows that the agent has diverged: it comes during the replay, and the recording has no error. */
  #divergence(error: ErrorBody, thrown: unknown): string | undefined {
    const replay = this.#recorder.replay;
    if (error.data?.reason === 'replay_diverged') return replay && error.message;
    // A time-out was thrown by nothing. An error of the engine is a limit of the run.
    if (thrown === undefined || isOwnError(thrown) || replay?.live !== false) return undefined;
    return replay.diverged(`the error "${error.message}"`).message;
  }

  #log(): AgentLog {
    return this.#services.logFor(this.run.run_id);
  }

  #warn(what: string, error: unknown): void {
    this.#log().warn(`${what}: ${errorOf(error).message}`);
  }

  readonly #onTeardownError = (error: unknown): void => this.#warn('the agent threw while it was unsubscribed', error);

  /** The end of a cancelled run: its agent has cleaned up, or cannot go on. */
  #cancelled(): void {
    if (!this.#isOpen && !this.#cleansUp) return;
    this.#recorder.endReplay();
    if (this.run.status !== 'cancelling') this.#recorder.repeatCancel();
    this.#addToHistory('cancelled');
    this.#changeStatus('cancelled');
    this.#close({ as: 'ended', reason: 'the run was cancelled' });
  }

  #end(error: ErrorBody, thrown?: unknown): void {
    if (!this.#isOpen) return;
    if (this.#isCancelled) return void this.#cancelled();
    const divergence = this.#divergence(error, thrown);
    if (divergence !== undefined) return void this.#services.onDiverged(this.run.run_id, divergence);
    this.#failure = failureOf(error, thrown);
    this.#finish('failed', error);
  }

  #finish(status: 'completed' | 'failed', error?: ErrorBody): void {
    this.#addToHistory(status);
    this.log.attach({ ended: { tokens: this.#tokens.total, seconds: this.#times.worked / 1000 } });
    this.#changeStatus(status, error && { error });
    this.#close({ as: 'ended', reason: 'the run is over' });
    this.#unstarted.report(this.run.run_id, () => this.#log());
  }

  /** In the commit of the run's end, so that the next turn knows it. */
  #addToHistory(status: 'completed' | 'failed' | 'cancelled'): void {
    if (status !== 'completed') this.#recorder.endReplay();
    const { sessions, now } = this.#services;
    this.log.attach(sessions.turnExtras(this.log.row, this.#input, { ...this.run, status }, now()));
  }

  /** Every end of an execution comes here. From now on the agent's output is ignored, and it can start no work. */
  #close(closing: Closing): void {
    const wasOpen = this.#isOpen;
    if (wasOpen || this.#cleansUp) this.#closeAgent(closing, wasOpen);
    // The agent of a cancelled run may still work.
    if (closing.as !== 'cancelled') this.#trace?.end(this.#tokens.reported.usage);
  }

  #closeAgent(closing: Closing, wasOpen: boolean): void {
    this.#runSignal.close(closing);
    this.#awaits?.close();
    if (closing.as !== 'cancelled') this.#feed?.close();
    // Before the signal, so that errors caused by the abort are ignored.
    if (closing.as !== 'left') {
      if (wasOpen) this.#subscriber?.unsubscribe();
      this.#refuse(closing);
    }
    this.#runSignal.abort(closing);
  }

  /** Ends what the agent waits for, so that it cleans up. */
  #refuse({ reason }: Closing): void {
    if (this.#awaits === undefined && this.#steps === undefined) return;
    const refused = reported(fail('run_not_open', 'What the agent waits for', reason).withoutFrames(), ignored);
    this.#awaits?.refuse(refused, this.#onTeardownError);
    this.#steps?.end(refused, this.#onTeardownError);
  }
}
