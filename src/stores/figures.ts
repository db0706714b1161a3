import type { AgentFigures, Outcome, RunRow, Write } from '../core/store.ts';

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

/** What those of the writes that were taken, and end a run, add to their agents' figures. */
export function summed(writes: readonly Write[], outcomes: readonly Outcome[]): Iterable<AgentFigures> {
  const sums = new Map<string, AgentFigures>();
  writes.forEach(({ row, ended }, index) => {
    if (ended === undefined || outcomes[index] !== 'taken') return;
    sums.set(row.agent_name, withEnded(sums.get(row.agent_name), row, ended));
  });
  return sums.values();
}
