import { isForAllNodes, waitsAfter } from '../../core/ports/run-claims.ts';
import { appendsOnly, type Key, lastAfter, type Outcome, type Write } from '../../core/ports/run-store.ts';
import { sessionChanges } from '../remote/session-changes.ts';
import { needsOf } from './claims.ts';
import { encodeDelivery } from './deliveries.ts';
import { score, timestamp } from './scores.ts';

/** The field of an Idempotency-Key in the hash of all keys. */
export const keyField = ({ scope, key }: Pick<Key, 'scope' | 'key'>): string => JSON.stringify([scope, key]);

/** The owner with which a scope begins. Each owner has a colon. */
const ownerOfScope = (scope: string): string | undefined => /^([^ :]+:[^ ]*) /.exec(scope)?.[1];

/**
 * A write as the commit script reads it. JSON leaves out what is undefined. Numbers that the script compares are
 * strings, because Redis returns strings.
 */
export function encodeWrite(write: Write): object {
  const { row, key, ended, input } = write;
  const { run_id, agent_name, session_id, status, owner } = row;
  const from = String(write.from ?? row.epoch);
  const expect = String(write.expect);
  const last = String(lastAfter(write));
  const journal = write.journal?.join('\n');
  if (appendsOnly(write)) return { run_id, from, expect, last, journal };
  const changed = write.grown === true ? undefined : row;
  const needs = changed && needsOf(changed);
  const { history, state } = sessionChanges(write);
  // One literal: to add keys to spread ones takes V8 three times as long.
  return {
    run_id,
    from,
    expect,
    last,
    row: changed && JSON.stringify({ ...changed, targets: undefined, readers: undefined }),
    epoch: changed && String(changed.epoch),
    status: changed?.status,
    status_at: changed && score(changed.status_at),
    targets: changed?.targets ?? undefined,
    ended: changed && score(changed.finished_at),
    due: changed && score(changed.due),
    parked: typeof changed?.parked === 'string' || undefined,
    needs_node: needs?.needs_node,
    needs_agent: needs?.needs_agent,
    // Empty for none; without it, the run keeps its node.
    node: write.node === null ? '' : write.node,
    waits: waitsAfter(write) || undefined,
    for_all: isForAllNodes(write) || undefined,
    input: changed && write.expect === 0 && input !== undefined ? JSON.stringify(input) : undefined,
    agent: agent_name,
    session: session_id,
    owner: owner ?? undefined,
    when: write.when,
    journal,
    history,
    state,
    resources: write.resources?.map((resource) => ({
      id: resource.resource_id,
      session: resource.session_id,
      run: resource.run_id ?? undefined,
      text: JSON.stringify(resource),
    })),
    deliveries: write.deliveries?.map((one) => encodeDelivery(one, row)),
    key: key && encodeKey(key, keyField(key)),
    figures: ended && {
      ended: status === 'completed' || status === 'failed' ? status : undefined,
      tokens: String(ended.tokens),
      seconds: String(ended.seconds),
    },
  };
}

/** Stands for `TargetsChanged`; the targets are read apart. */
export const targetsChanged = 'c';

/** The outcomes behind the letters that the commit script returns. */
export const outcomeOfLetter: Readonly<Record<string, Outcome>> = {
  t: 'taken',
  f: 'fenced',
  k: 'key_used',
  s: 'session_busy',
  d: { rejected: new Error('a delivery with this id exists already') },
  r: { rejected: new Error('the data of the run or of its session in Redis is damaged') },
};

/** An Idempotency-Key as scripts store it under a field. */
export function encodeKey({ fresh, ...key }: NonNullable<Write['key']>, name: string): object {
  const age = timestamp(key.created_at);
  return { name, text: JSON.stringify(key), owner: ownerOfScope(key.scope), age, fresh: timestamp(fresh) };
}

/** @throws RangeError where Redis would break the connection instead of an answer */
export function checkLength(text: string, maxBytes: number): void {
  // A code unit has three bytes at most.
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes)
    throw new RangeError(`Redis accepts texts of ${maxBytes} bytes; raise its proto-max-bulk-len`);
}
