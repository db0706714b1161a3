import { appendsOnly, lastAfter, type Outcome, type Write } from '../../core/ports/run-store.ts';
import { sessionChanges } from '../remote/session-changes.ts';

/** Separates the events of writes. JSON escapes it in texts. */
const separator = '\u001e';

/** A commit for the SQL function `keep`. */
interface EncodedCommit {
  /**
   * The parameters from the third on: the columns of the writes that `append_events` applies, the JSON of the others, and
   * their events. To escape the events for JSON and to parse them again would cost more.
   */
  readonly values: readonly unknown[];
  /** The length of all texts. */
  readonly chars: number;
  /** `keep` returns the outcomes in another order: the nth one is that of the write with the nth of these indexes. */
  readonly indexes: readonly number[];
}

/**
 * Encodes a commit. One statement applies all writes that only append events, before the other writes. So such a write
 * has to be the first one of its run.
 */
export function encodeCommit(writes: readonly Write[]): EncodedCommit {
  const runs = new Set<string>();
  const appends: Write[] = [];
  const others: Write[] = [];
  const indexes: number[] = [];
  const otherIndexes: number[] = [];
  for (const [index, write] of writes.entries()) {
    const { run_id } = write.row;
    const isAppend = !runs.has(run_id) && appendsOnly(write) && write.journal === undefined;
    (isAppend ? appends : others).push(write);
    (isAppend ? indexes : otherIndexes).push(index);
    runs.add(run_id);
  }
  const logs = appends.map(bodyOf).join(separator);
  const json = JSON.stringify(others.map(encodeWrite));
  // With a separator after each: the text would be the same for one write without events and for none.
  const bodies = others.map((write) => bodyOf(write) + separator).join('');
  const ids = appends.map(({ row }) => row.run_id);
  const epochs = appends.map(({ row }) => row.epoch);
  const expects = appends.map(({ expect }) => expect);
  return {
    values: [ids, epochs, expects, appends.map(lastAfter), logs, json, bodies],
    chars: logs.length + json.length + bodies.length,
    indexes: [...indexes, ...otherIndexes],
  };
}

const bodyOf = ({ lines }: Write): string => lines.join('\n');

/** The outcomes of a commit's writes, in the order of the writes. */
export function parseOutcomes(texts: readonly string[], { indexes }: EncodedCommit): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const [nth, index] of indexes.entries()) outcomes[index] = parseOutcome(texts[nth] ?? 'fenced');
  return outcomes;
}

/** A write as the SQL function `take` reads it. */
function encodeWrite(write: Write): object {
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
const parseOutcome = (text: string): Outcome =>
  text === 'taken' || text === 'key_used' || text === 'session_busy' || text === 'fenced' ? text : JSON.parse(text);
