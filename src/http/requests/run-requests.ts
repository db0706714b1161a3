import type { IncomingHttpHeaders } from 'node:http';
import { isOnDisconnect, nameProblem } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import type { RunFilter } from '../../core/ports/run-lists.ts';
import type { Access } from '../../engine/access.ts';
import type { ChangesOptions } from '../../engine/changes/change-reader.ts';
import type { RunOptions } from '../../engine/runs/create.ts';
import type { RunHeaders, RunsQuery } from '../../schema/api.ts';

// What requests for runs ask for, whether they come over HTTP or from a caller in this process.

/** The options of a run in the headers of its request. */
export const runOptions = (headers: RunHeaders): RunOptions => ({
  ...(headers['idempotency-key'] !== undefined && { idempotency_key: headers['idempotency-key'] }),
  ...(headers['if-busy'] !== undefined && { if_busy: headers['if-busy'] }),
  ...(headers['on-disconnect'] !== undefined &&
    isOnDisconnect(headers['on-disconnect']) && { on_disconnect: headers['on-disconnect'] }),
  ...(headers['rivulet-channel'] !== undefined && { channel: headers['rivulet-channel'] }),
  ...(headers.traceparent !== undefined && {
    trace: { traceparent: headers.traceparent, tracestate: headers.tracestate },
  }),
});

/** Runs of a page, or of the beginning of a feed, where the query names no limit. */
const defaultLimit = 20;

/** A page of runs as JSON. @throws RivuletError `agent_unknown` */
export async function listRuns(access: Access, { limit = defaultLimit, cursor, ...query }: RunsQuery): Promise<string> {
  const { runs, next } = await access.runs(filterOf(query), cursor?.toLowerCase(), limit);
  return `{"runs":[${runs.join(',')}]${next === undefined ? '' : `,"next_cursor":"${next}"`}}`;
}

/** Characters of diagnostics in one answer. */
const diagnosticsPage = 1024 * 1024;

/** A page of the diagnostics of a run, as JSON. @throws as `Access.diagnostics` */
export async function listDiagnostics(access: Access, run_id: string, after = 0): Promise<string> {
  const { diagnostics, next } = await access.diagnostics(run_id, after, diagnosticsPage);
  return `{"diagnostics":[${diagnostics.join(',')}]${next === undefined ? '' : `,"next":${next}`}}`;
}

/** What a feed of runs begins with; the position 0 is none. @throws RivuletError `agent_unknown` */
export const feedOf = (
  { limit = defaultLimit, cursor: _, ...query }: RunsQuery,
  after: number,
): [filter: RunFilter, options: ChangesOptions] => [filterOf(query), { limit, after: after || undefined }];

/** @throws RivuletError `agent_unknown` */
function filterOf({ agent_name, session_id, status, parked, owner }: RunsQuery): RunFilter {
  // An invalid name is an unknown agent, as in all calls. A store might refuse the name.
  if (agent_name !== undefined && nameProblem(agent_name) !== undefined) {
    throw fail('agent_unknown', agent_name.slice(0, 100));
  }
  return {
    agent_name,
    ...(session_id !== undefined && { session_id: session_id.toLowerCase() }),
    status,
    ...(parked && { parked }),
    owner,
  };
}

/** The id of the last event that a client has; undefined where the request has none. */
export function lastEventIdIn({ headers }: { readonly headers: IncomingHttpHeaders }): string | undefined {
  const id = String(headers['last-event-id'] ?? '');
  return id === '' ? undefined : id;
}

/** @throws RivuletError `cursor_invalid` */
export function cursorIn(name: string, given: string): number {
  if (!/^\d{1,15}$/.test(given)) throw fail('cursor_invalid', name, given.slice(0, 100));
  return Number(given);
}
