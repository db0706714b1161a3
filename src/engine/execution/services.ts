import type { AgentLog } from '../../core/agent.ts';
import type { ToEvents } from '../../core/to-events.ts';
import type { Limits } from '../limits.ts';
import type { Registry } from '../registry.ts';
import type { Sessions } from '../sessions.ts';

/** What all executions of an engine share. */
export interface ExecutionServices {
  readonly registry: Registry;
  readonly sessions: Sessions;
  readonly toEvents: ToEvents;
  readonly limits: Limits;
  readonly now: () => string;
  /** A logger that knows the run. */
  readonly logFor: (run_id: string) => AgentLog;
  /**
   * Runs work in the async context of the engine: `AsyncLocalStorage.snapshot()`, taken once. Agents begin there:
   * what starts a run is often another client's request, or the end of another run.
   */
  readonly outside: <T>(work: () => T) => T;
}
