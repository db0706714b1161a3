import { defer, Observable } from 'rxjs';
import { errorOf } from '../../core/errors.ts';
import type { AgentSpan, ExecutionEnd, ExecutionSpan, Traces, WorkEnd, WorkSpan } from '../../core/ports/traces.ts';
import { sessionIdOf } from '../../core/principal.ts';
import { isFinal } from '../../core/run-state.ts';
import type { AgentManifest } from '../../schema/agent.ts';
import type { Message } from '../../schema/message.ts';
import type { RunStatus, RunUsage } from '../../schema/run.ts';
import type { Recorder } from './recorder.ts';

/** The span of an execution, which follows the status of its run. */
export class RunTrace {
  readonly span: ExecutionSpan;
  readonly #recorder: Recorder;
  /** Of the span. */
  #began = performance.now();
  #requested: string | null = null;
  /** The span has ended, because the run awaits. */
  #awaits = false;

  constructor(traces: Traces, manifest: AgentManifest, input: readonly Message[], recorder: Recorder) {
    const { run_id, session_id, epoch, attempts, trace } = recorder.log.row;
    this.#recorder = recorder;
    this.span = traces.begin({
      manifest,
      run_id,
      session_id: sessionIdOf(session_id),
      epoch,
      attempts,
      trace,
      input,
    });
    this.#keep();
  }

  /** What the request of a reply belongs to, before the reply changes the status; null after it. */
  onReply(requested: string | null): void {
    this.#requested = requested;
  }

  /** The run has this status now. In a replay it had it before. */
  onStatus(status: RunStatus): void {
    if (this.#recorder.replay !== undefined) return;
    if (status === 'awaiting') {
      this.#awaits = true;
      this.span.suspend(this.#state(undefined));
    } else if (status === 'in-progress' && this.#awaits) {
      this.#awaits = false;
      this.#began = performance.now();
      this.span.resume(this.#requested);
      this.#keep();
    }
  }

  /** The execution is over: its run is final, or leaves this process. */
  end(usage: RunUsage | undefined): void {
    this.span.end(this.#state(usage ?? { tokens: this.#recorder.parts }));
  }

  #state(usage: RunUsage | undefined): ExecutionEnd {
    const { run, firstPartAt } = this.#recorder;
    return {
      status: run.status,
      error: run.error,
      usage: isFinal(run.status) ? usage : undefined,
      firstPart:
        firstPartAt !== undefined && firstPartAt > this.#began ? (firstPartAt - this.#began) / 1000 : undefined,
      output: run.output,
    };
  }

  // Only a durable run has a next execution. The change goes with the next commit, which the status causes as well.
  #keep(): void {
    const { log } = this.#recorder;
    if (log.row.tier === 'durable') log.change({ trace: this.span.kept });
  }
}

/**
 * Work inside of its span, which ends with the work. What it emits is received inside of `outer`, so that what follows
 * from it belongs to the agent, and not to the work. Without spans, the work as it is.
 */
export function inSpan<T>(
  work: () => Observable<T>,
  span: WorkSpan | undefined,
  outer: AgentSpan | undefined,
): Observable<T> {
  if (span === undefined || outer === undefined) return work();
  return new Observable((subscriber) => {
    let ended = false;
    const end = (how: WorkEnd): void => {
      if (!ended) span.end(how);
      ended = true;
    };
    subscriber.add(() => end({ outcome: 'cancelled' }));
    const doing = span.within(() =>
      defer(work).subscribe({
        next: (value) => outer.within(() => subscriber.next(value)),
        // The span ends first: the agent's next work begins in these calls.
        error: (error) => {
          end({ outcome: 'failed', error: errorOf(error) });
          outer.within(() => subscriber.error(error));
        },
        complete: () => {
          end({ outcome: 'completed' });
          outer.within(() => subscriber.complete());
        },
      }),
    );
    subscriber.add(doing);
  });
}
