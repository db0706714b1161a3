import type { Key, Outcome, Write } from '../../core/store.ts';
import { sessionOf } from '../remote/write-values.ts';

/** Of an Idempotency-Key, among all of them. */
export const keyName = ({ scope, key }: Pick<Key, 'scope' | 'key'>): string => JSON.stringify([scope, key]);

/** In milliseconds; no time is before everything. */
export const time = (text: string | undefined): number => Date.parse(text ?? '') || 0;

/** The same for a time that a list is ordered by. @throws RangeError where it is none */
function instant(text: string | null): number | undefined {
  const found = text === null ? undefined : Date.parse(text);
  if (Number.isNaN(found)) throw new RangeError(`"${text}" is no time`);
  return found;
}

/** A write as its script reads it. What is undefined is left out; what is compared there is text here. */
export function describe(write: Write): object {
  const { row, expect, key, ended } = write;
  const { run_id, agent_name, session_id, status } = row;
  return {
    run_id,
    from: String(write.from ?? row.epoch),
    expect: String(expect),
    last: String(row.last),
    ...(write.grown !== true && {
      row: JSON.stringify(row),
      epoch: String(row.epoch),
      status,
      ended: instant(row.finished_at),
      due: instant(row.due),
      input: expect === 0 && write.input !== undefined ? JSON.stringify(write.input) : undefined,
    }),
    agent: agent_name,
    session: session_id,
    when: write.when,
    journal: write.journal?.join('\n'),
    ...sessionOf(write),
    resources: write.resources?.map((one) => ({
      id: one.resource_id,
      session: one.session_id,
      run: one.run_id ?? undefined,
      text: JSON.stringify(one),
    })),
    ...(key !== undefined && {
      key: { name: keyName(key), text: keyText(key), age: time(key.created_at), fresh: time(key.fresh) },
    }),
    ...(ended !== undefined && {
      figures: {
        ended: status === 'completed' || status === 'failed' ? status : undefined,
        tokens: String(ended.tokens),
        seconds: String(ended.seconds),
      },
    }),
  };
}

/** What the script's letters mean. */
export const outcomes: Readonly<Record<string, Outcome>> = {
  t: 'taken',
  f: 'fenced',
  k: 'key_used',
  s: 'session_busy',
  r: { rejected: new Error('what Redis keeps of the run or of its session is damaged') },
};

function keyText({ fresh: _, ...key }: Key & { fresh: string }): string {
  return JSON.stringify(key);
}
