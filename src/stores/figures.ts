import type { AgentFigures, RunRow, Write } from '../core/store.ts';

/** An agent's figures with one more run that has ended. */
export function withEnded(
  before: AgentFigures | undefined,
  { agent_name, status }: RunRow,
  { tokens, seconds }: NonNullable<Write['ended']>,
): AgentFigures {
  const sum = before ?? { agent_name, completed: 0, failed: 0, tokens: 0, seconds: 0 };
  return {
    agent_name,
    completed: sum.completed + (status === 'completed' ? 1 : 0),
    failed: sum.failed + (status === 'failed' ? 1 : 0),
    tokens: sum.tokens + tokens,
    seconds: sum.seconds + seconds,
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
