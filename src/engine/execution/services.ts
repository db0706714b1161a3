import type { AgentLog } from '../../core/agent.ts';
import type { ToEvents } from '../../core/to-events.ts';
import type { Limits } from '../limits.ts';
import type { Registry } from '../registry.ts';
import type { Sessions } from '../sessions.ts';

/** The parts of an engine that all of its executions share. */
export interface ExecutionServices {
  readonly registry: Registry;
  readonly sessions: Sessions;
  readonly toEvents: ToEvents;
  readonly limits: Limits;
  readonly now: () => string;
  /** A logger that adds the run's id. */
  readonly logFor: (run_id: string) => AgentLog;
  /**
   * Runs work in the async context of the engine: `AsyncLocalStorage.snapshot()`, taken once. Agents start there,
   * because the code that starts a run often belongs to the request of another client, or to the end of another run.
   */
  readonly outside: <T>(work: () => T) => T;
}
