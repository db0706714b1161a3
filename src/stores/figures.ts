import type { AgentFigures } from '../core/ports/run-lists.ts';
import type { RunRow, Write } from '../core/ports/run-store.ts';

/** Figures over the runs of one owner, or over all runs, with the owner `everyone`. */
export interface OwnedFigures extends AgentFigures {
  readonly owner: string;
}

/** Stands for all owners. No owner is the empty text. */
export const everyone = '';

/** The columns of a run's row that say where its figures count. */
export type EndedRun = Pick<RunRow, 'agent_name' | 'owner' | 'status'>;

/** What a run adds to its agent's figures: a sum over it alone, finite whatever the agent reports. */
export function figuresOf({ agent_name, status }: EndedRun, ended: NonNullable<Write['ended']>): AgentFigures {
  const finite = (value: number): number => (Number.isFinite(value) ? value : 0);
  return {
    agent_name,
    completed: status === 'completed' ? 1 : 0,
    failed: status === 'failed' ? 1 : 0,
    tokens: finite(ended.tokens),
    seconds: finite(ended.seconds),
  };
}

/** The sum of an agent's figures, at most the largest finite number. */
export function sumOf(before: AgentFigures | undefined, more: AgentFigures): AgentFigures {
  if (before === undefined) return more;
  return {
    agent_name: more.agent_name,
    completed: before.completed + more.completed,
    failed: before.failed + more.failed,
    tokens: Math.min(before.tokens + more.tokens, Number.MAX_VALUE),
    seconds: Math.min(before.seconds + more.seconds, Number.MAX_VALUE),
  };
}
