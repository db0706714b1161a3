import type { AgentManifest } from '../../schema/agent.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Message } from '../../schema/message.ts';
import type { RunStatus, RunUsage } from '../../schema/run.ts';
import type { ModelCallReport } from '../model-call.ts';

/** The W3C trace context of a request. */
export interface TraceHeaders {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** A span as log lines name it, in hexadecimal digits. */
export interface SpanIds {
  readonly trace_id: string;
  readonly span_id: string;
}

/**
 * The port of traces; without it nothing is traced. A run may await for days, and another process may go on with it.
 * So each execution has a span of its own, and the run keeps what its next span belongs to: `RunRow.trace`.
 */
export interface Traces {
  /**
   * What the next span of a run belongs to when a request creates or resumes it: the span that is active here, or else
   * that of the headers. `kept` is what the run has kept so far.
   */
  requested(headers: TraceHeaders | undefined, kept: string | null): string | null;
  /** The span that is active here; undefined without one. */
  active(): SpanIds | undefined;
  /** Begins the span of an execution. */
  begin(execution: TracedExecution): ExecutionSpan;
  /** Exports the spans that have ended. Where that fails, they are lost. */
  flush(): Promise<void>;
}

export interface TracedExecution {
  readonly manifest: AgentManifest;
  readonly run_id: string;
  readonly session_id: string;
  readonly epoch: number;
  readonly attempts: number;
  /** What the run has kept. */
  readonly trace: string | null;
  readonly input: readonly Message[];
}

/** How a step or a called agent ended. */
export interface WorkEnd {
  readonly outcome: 'completed' | 'failed' | 'cancelled';
  readonly error?: ErrorBody | undefined;
}

/** The span of a piece of work. */
export interface WorkSpan {
  /** Does work inside of the span: spans and requests of that work become its children. */
  within<T>(work: () => T): T;
  end(end: WorkEnd): void;
}

/** The span of an agent: of the run's own, or of one that it called. */
export interface AgentSpan extends Omit<WorkSpan, 'end'> {
  /** The trace context for requests that the agent makes. */
  headers(): Record<string, string>;
  step(name: string): WorkSpan;
  /** The span of a call of a tool. */
  tool(name: string, tool_call_id: string): WorkSpan;
  /** Adds the span of a call of a model that has ended. */
  modelCall(report: ModelCallReport): void;
  call(manifest: AgentManifest): CallSpan;
}

export interface CallSpan extends AgentSpan, WorkSpan {}

export interface ExecutionEnd {
  readonly status: RunStatus;
  readonly error?: ErrorBody | undefined;
  /** Of a final run: what its agent reported, or else its parts. */
  readonly usage?: RunUsage | undefined;
  /** Seconds until the first part of the output. */
  readonly firstPart?: number | undefined;
  readonly output: readonly Message[];
}

/** The span of an execution. It ends while the run awaits, and so do the spans of the agents that it has called. */
export interface ExecutionSpan extends AgentSpan {
  /** What the run keeps for its next span. */
  readonly kept: string | null;
  /** The span of the moment, or the last one; undefined where the SDK gives it no ids. */
  readonly ids: SpanIds | undefined;
  suspend(end: ExecutionEnd): void;
  /** Begins the next span, which links to the one before. `requested` is what the reply's request belongs to. */
  resume(requested: string | null): void;
  end(end: ExecutionEnd): void;
}
