import type { RunRow } from '../core/ports/run-store.ts';
import { sessionIdOf } from '../core/principal.ts';
import type { Engine } from '../engine/engine.ts';
import type { EndedRun } from '../engine/engine-events.ts';
import { rounded } from '../http/request-log.ts';

interface EndedRunLog {
  info?(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/**
 * Logs one line for each run that ends: a failed one at `warn`, with the stack of what its agent threw. Also one at `warn`
 * for each attempt that parks a run.
 */
export function logEndedRuns(engine: Engine, log: EndedRunLog): void {
  engine.on('runEnded', (run) => {
    const { status, principal } = run.row;
    const fields = fieldsOf(run, principal === null ? undefined : principalIdOf(principal));
    if (status === 'failed') log.warn(fields, 'run failed');
    else log.info?.(fields, `run ${status}`);
  });
  engine.on('runParked', ({ run_id, agent_name, session_id, status, parked }) => {
    const fields = { run_id, session_id: sessionIdOf(session_id), agent: agent_name, status, reason: parked };
    log.warn(fields, `run parked; deploy an agent that goes on with it, and try it again: rivulet retry ${run_id}`);
  });
}

/** Always the same fields, undefined where there is none, which loggers leave out: an object of one shape is cheaper. */
function fieldsOf({ row, error, failure, work, span }: EndedRun, principal: string | undefined): object {
  const { run_id, agent_name, session_id, status } = row;
  const reason = error?.data?.reason ?? error?.data?.code ?? error?.code;
  return {
    run_id,
    session_id: sessionIdOf(session_id),
    agent: agent_name,
    principal,
    status,
    seconds: rounded(work?.seconds),
    queued_seconds: rounded(work?.queued),
    first_part_seconds: rounded(work?.firstPart),
    parts: work?.parts,
    tokens: work?.tokens,
    trace_id: span?.trace_id,
    span_id: span?.span_id,
    reason,
    // The message of what an agent threw may hold a secret; its stack has the message without URLs' passwords.
    err: error && { type: reason, message: summaryOf(failure ?? error.message), stack: failure ?? '' },
  };
}

/** The first line of an error, and of each of its causes: `fetch failed` does not say that the connection was refused. */
const summaryOf = (text: string): string => text.split('\nCaused by: ').map(firstLine).join('; caused by ');

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

function principalIdOf(principal: NonNullable<RunRow['principal']>): string {
  const { id }: { id: string } = JSON.parse(principal);
  return id;
}
