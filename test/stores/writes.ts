import { cpSync, existsSync } from 'node:fs';
import type { Batch, RunRow, Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { newId, newIdBeside } from '../../src/engine/ids.ts';

/** The row of a new run before its first event. */
export function fresh(more: Partial<RunRow> = {}): RunRow {
  const run_id = more.session_id === undefined ? newId() : newIdBeside(more.session_id);
  return {
    run_id,
    agent_name: 'echo',
    session_id: `session-of-${run_id}`,
    owner: null,
    principal: null,
    targets: null,
    readers: null,
    trace: null,
    epoch: 1,
    status: 'created',
    status_at: '2026-01-01T00:00:00.000Z',
    created_at: '2026-01-01T00:00:00.000Z',
    finished_at: null,
    tier: 'pinned',
    attempts: 0,
    title: '',
    queued_at: null,
    rests_at: null,
    parked: null,
    due: null,
    on_disconnect: 'continue',
    last: 0,
    snapshot: 0,
    ...more,
  };
}

export const input = [{ role: 'user', parts: [{ content_type: 'text/plain', content: 'hi' }] }];

/** A write with the whole row after it, from which a test goes on. */
export type TestWrite = Write & { readonly row: RunRow };

/** The write that appends lines to a run; the first one creates the run. */
export function append(row: RunRow, lines: string[], more: Partial<Omit<Write, 'row'>> = {}): TestWrite {
  const first = row.last === 0 ? { input } : {};
  // A run has one time for its final status and its end.
  const status_at = row.finished_at ?? row.status_at;
  return { row: { ...row, status_at, last: row.last + lines.length }, expect: row.last, lines, ...first, ...more };
}

export const numbered = (batches: Batch[]): [number, string][] =>
  batches.flatMap(({ first, lines }) => lines.map((line, index): [number, string] => [first + index, line]));

/** All lines of a run's log, in order. */
export async function linesOf(store: Store, run_id: string): Promise<string[]> {
  const lines: string[] = [];
  for (;;) {
    const page = numbered(await store.events(run_id, lines.length, 100)).filter(([id]) => id > lines.length);
    if (page.length === 0) return lines;
    lines.push(...page.map(([, line]) => line));
  }
}

/** The write that ends a run. */
export const end = (row: RunRow, status: RunRow['status'], more: Partial<Omit<Write, 'row'>> = {}): TestWrite =>
  append({ ...row, status, finished_at: '2026-01-01T00:00:01.000Z' }, ['"end"'], more);

/** Copies the files of a store in SQLite at this moment, as a kill of its process leaves them. Returns the copy's path. */
export function copyAfterKill(path: string, copy: string): string {
  for (const end of ['', '-wal']) if (existsSync(path + end)) cpSync(path + end, copy + end);
  return copy;
}

/** A message of a run: a resource, and its URL in the history of the session. */
export const messageOf = ({ run_id, session_id }: RunRow, text: string): Pick<Write, 'resources' | 'history'> => {
  const resource_id = `${text}-of-${run_id}`;
  return {
    resources: [{ resource_id, session_id, run_id, content_type: 'application/json', body: JSON.stringify(text) }],
    history: [`/resources/${resource_id}`],
  };
};
