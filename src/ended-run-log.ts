import { sessionIdOf } from './core/principal.ts';
import type { RunRow } from './core/store.ts';
import type { EndedRun, EngineObserver } from './engine/observers.ts';
import { rounded } from './http/request-log.ts';

interface EndedRunLog {
  info?(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Logs one line for each run that ends: a failed one at `warn`, with the stack of what its agent threw. */
export const endedRunLog = (log: EndedRunLog): EngineObserver => ({
  onRunEnded(run) {
    const { status } = run.row;
    if (status === 'failed') log.warn(fieldsOf(run), 'run failed');
    else log.info?.(fieldsOf(run), `run ${status}`);
  },
});

function fieldsOf({ row, error, failure, work }: EndedRun): object {
  const { run_id, agent_name, session_id, status, principal } = row;
  const reason = error?.data?.reason ?? error?.data?.code ?? error?.code;
  return {
    run_id,
    session_id: sessionIdOf(session_id),
    agent: agent_name,
    ...(principal !== null && { principal: principalIdOf(principal) }),
    status,
    ...(work && {
      seconds: rounded(work.seconds),
      ...(work.queued !== undefined && { queued_seconds: rounded(work.queued) }),
      ...(work.firstPart !== undefined && { first_part_seconds: rounded(work.firstPart) }),
      parts: work.parts,
      tokens: work.tokens,
    }),
    ...(error && { reason }),
    // The message of what an agent threw may hold a secret; its stack has the message without URLs' passwords.
    ...(error && { err: { type: reason, message: firstLine(failure ?? error.message), stack: failure ?? '' } }),
  };
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

function principalIdOf(principal: NonNullable<RunRow['principal']>): string {
  const { id }: { id: string } = JSON.parse(principal);
  return id;
}
