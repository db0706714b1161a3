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

/** Figures over the runs of one owner, or over all runs, with the owner `everyone`. */
export interface OwnedFigures extends AgentFigures {
  readonly owner: string;
}

/** Stands for all owners. No owner is the empty text. */
export const everyone = '';

/** The figures that the applied writes add to their agents, and to those of each owner: those of the runs that they end. */
export function figuresOfCommit(writes: readonly Write[], outcomes: readonly Outcome[]): Iterable<OwnedFigures> {
  const sums = new Map<string, OwnedFigures>();
  writes.forEach(({ row, ended }, index) => {
    if (ended === undefined || outcomes[index] !== 'taken') return;
    for (const owner of row.owner === null ? [everyone] : [everyone, row.owner]) {
      const name = `${owner} ${row.agent_name}`;
      sums.set(name, { owner, ...addEndedRun(sums.get(name), row, ended) });
    }
  });
  return sums.values();
}
