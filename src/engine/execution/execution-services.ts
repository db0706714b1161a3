import type { AgentLog } from '../../core/agent.ts';
import type { LeaseHolder } from '../../core/ports/lease.ts';
import type { Traces } from '../../core/ports/traces.ts';
import type { ToEvents } from '../../core/to-events.ts';
import type { Registry } from '../agents/registry.ts';
import type { Limits } from '../limits.ts';
import type { Sessions } from '../sessions.ts';
import type { TokenServices } from './tokens.ts';

/** The parts of an engine that all of its executions share. */
export interface ExecutionServices extends TokenServices {
  readonly registry: Registry;
  readonly sessions: Sessions;
  readonly toEvents: ToEvents;
  /** The agent of a re-entered run does not repeat the recording: parks the run, and releases the execution at once. */
  readonly onDiverged: (run_id: string, reason: string) => void;
  readonly limits: Limits;
  readonly dispatcher: LeaseHolder;
  readonly now: () => string;
  /** Whether the messages and tools of model calls are kept, and lines of `context.log`. */
  readonly capturesContent: boolean;
  /** A logger that adds the run's id. */
  readonly logFor: (run_id: string) => AgentLog;
  /**
   * Runs work in the async context of the engine: `AsyncLocalStorage.snapshot()`, taken once. Agents start there,
   * because the code that starts a run often belongs to the request of another client, or to the end of another run.
   */
  readonly outside: <T>(work: () => T) => T;
  /** Undefined without an OpenTelemetry SDK. */
  readonly traces: Traces | undefined;
}
