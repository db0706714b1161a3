import { appendsOnly, lastAfter, type Outcome, type Write } from '../../core/ports/run-store.ts';
import { sessionChanges } from '../remote/session-changes.ts';

/** A write as the SQL function `take` reads it. */
export function encodeWrite(write: Write): object {
  const { row, expect, grown, key, ended, resources } = write;
  const { run_id, epoch } = row;
  const last = lastAfter(write);
  const journal = write.journal?.join('\n');
  if (appendsOnly(write)) return { run_id, epoch, last, expect, grown, journal };
  const isFirst = expect === 0 && write.input !== undefined;
  return {
    ...row,
    last,
    // Never changes, and is longer than most events.
    principal: isFirst ? row.principal : undefined,
    targets: grown === true ? undefined : row.targets,
    // Empty for none; without it, the run keeps its node.
    node: write.node === null ? '' : write.node,
    expect,
    grown,
    when: write.when,
    from: write.from ?? epoch,
    ...(isFirst && { input: JSON.stringify(write.input) }),
    journal,
    key,
    resources,
    deliveries: write.deliveries,
    ...sessionChanges(write),
    ...ended,
  };
}

/** The function `take` writes other targets as JSON. */
export const parseOutcome = (text: string): Outcome =>
  text === 'taken' || text === 'key_used' || text === 'session_busy' || text === 'fenced' ? text : JSON.parse(text);
