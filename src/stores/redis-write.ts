import type { Key, Write } from '../core/store.ts';
import { sessionOf } from './parcels.ts';

/** Of an Idempotency-Key, among all of them. */
export const keyName = ({ scope, key }: Pick<Key, 'scope' | 'key'>): string => JSON.stringify([scope, key]);

/** In milliseconds; no time is before everything. */
export const time = (text: string | undefined): number => Date.parse(text ?? '') || 0;

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
      queued: row.queued_at === null ? undefined : true,
      ended: row.finished_at === null ? undefined : time(row.finished_at),
      due: row.due === null ? undefined : time(row.due),
      input: expect === 0 && write.input !== undefined ? JSON.stringify(write.input) : undefined,
    }),
    agent: agent_name,
    session: session_id,
    alone: write.when === undefined ? undefined : true,
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

function keyText({ fresh: _, ...key }: Key & { fresh: string }): string {
  return JSON.stringify(key);
}
