import { textOf } from '../../core/parts.ts';
import type { Run, RunStatus } from '../../schema/run.ts';
import { type Connection, connect } from '../connect.ts';
import { exit } from '../exit-codes.ts';
import { table } from '../table.ts';
import { terminal } from '../terminal.ts';

export interface RunsOptions extends Connection {
  readonly agent?: string;
  readonly status?: RunStatus;
  readonly session?: string;
  readonly limit: number;
  readonly json?: boolean;
}

export async function runs({ agent, status, session, limit, json, ...connection }: RunsOptions): Promise<number> {
  const client = connect(connection);
  const filter = { agent_name: agent, status, session_id: session };
  // Prints page by page: the first rows appear at once, and a long list is never in memory as a whole.
  let printed = 0;
  let cursor: string | undefined;
  do {
    const page = await client.runs({ ...filter, limit: Math.min(limit - printed, 100), cursor });
    if (json) for (const run of page.runs) terminal.json(run);
    else table(printed === 0 ? ['RUN', 'AGENT', 'STATUS', 'CREATED (UTC)', ''] : undefined, page.runs.map(row), widths);
    printed += page.runs.length;
    cursor = page.next_cursor;
  } while (cursor !== undefined && printed < limit);
  return exit.completed;
}

/** Minimum widths of the columns, so that all pages align: a uuid, most names, a status, a time. */
const widths = [36, 16, 11, 19];

const row = ({ run_id, agent_name, status, created_at, error, await_request }: Run): string[] => [
  run_id,
  agent_name,
  status,
  created_at.slice(0, 19).replace('T', ' '),
  error?.message ?? (await_request ? textOf(await_request.message) : ''),
];
