import type { AgentFigures, Outcome, RunRow, Write } from '../core/store.ts';

/** A sum that stays finite, whatever figures an agent reports. */
const sum = (before: number, more: number): number =>
  Number.isFinite(more) ? Math.min(before + more, Number.MAX_VALUE) : before;

/** An agent's figures after one more run has ended. */
export function addEndedRun(
  before: AgentFigures | undefined,
  { agent_name, status }: RunRow,
  { tokens, seconds }: NonNullable<Write['ended']>,
): AgentFigures {
  const known = before ?? { agent_name, completed: 0, failed: 0, tokens: 0, seconds: 0 };
  return {
    agent_name,
    completed: known.completed + (status === 'completed' ? 1 : 0),
    failed: known.failed + (status === 'failed' ? 1 : 0),
    tokens: sum(known.tokens, tokens),
    seconds: sum(known.seconds, seconds),
  };
}

/** The figures that the applied writes add to their agents: those of the runs that they end. */
export function figuresOfCommit(writes: readonly Write[], outcomes: readonly Outcome[]): Iterable<AgentFigures> {
  const sums = new Map<string, AgentFigures>();
  writes.forEach(({ row, ended }, index) => {
    if (ended === undefined || outcomes[index] !== 'taken') return;
    sums.set(row.agent_name, addEndedRun(sums.get(row.agent_name), row, ended));
  });
  return sums.values();
}
