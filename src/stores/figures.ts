import type { AgentFigures, RunRow, Write } from '../core/store.ts';

/** A sum that stays a number, whatever a run says that it took. */
const sum = (before: number, more: number): number =>
  Number.isFinite(more) ? Math.min(before + more, Number.MAX_VALUE) : before;

/** An agent's figures with one more run that has ended. */
export function withEnded(
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

/** What the runs that ended add to their agents' figures. */
export function summed(writes: readonly Write[]): Iterable<AgentFigures> {
  const sums = new Map<string, AgentFigures>();
  for (const { row, ended } of writes) {
    if (ended !== undefined) sums.set(row.agent_name, withEnded(sums.get(row.agent_name), row, ended));
  }
  return sums.values();
}
