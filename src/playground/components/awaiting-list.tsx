import { textOf } from '../../core/parts.ts';
import type { RunSummary } from '../../schema/run.ts';
import { formatTime } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { RelativeTime } from './relative-time.tsx';

/** The runs that wait for the reply of a person, each with its question; the one that waits longest is first. */
export function AwaitingList() {
  const { awaiting } = usePlayground();
  const runs = awaiting.rows.value?.toSorted((a, b) => askedAt(a).localeCompare(askedAt(b)));
  return (
    <section class="page" aria-labelledby="awaiting-title">
      <h2 id="awaiting-title">Awaiting a reply</h2>
      {runs === undefined && <p class="note">Loading…</p>}
      {runs?.length === 0 && <p class="empty">No run awaits a reply. Questions of agents are listed here.</p>}
      <ul class="questions">
        {runs?.map((run) => (
          <Question key={run.run_id} run={run} />
        ))}
      </ul>
      {awaiting.older.value !== undefined && (
        <p class="note">
          These are the newest {runs?.length} of the runs that await a reply. The view of runs lists all of them.
        </p>
      )}
    </section>
  );
}

/** ISO 8601, which sorts by time. */
const askedAt = ({ await_request, created_at }: RunSummary): string => await_request?.message.created_at ?? created_at;

function Question({ run }: { run: RunSummary }) {
  const { router } = usePlayground();
  const { run_id, agent_name, session_id, await_request, title } = run;
  const question = await_request === undefined ? '' : textOf(await_request.message).trim();
  return (
    <li>
      <a class="card" href={router.href({ agent: agent_name, session: session_id, run: run_id, view: 'chat' })}>
        <strong>{question || `A question of ${agent_name}`}</strong>
        {title !== '' && <span class="description">Input: {title}</span>}
        <span class="figures">
          <span>{agent_name}</span>
          <span>
            waits for <RelativeTime time={askedAt(run)} span />
          </span>
          {await_request?.expires_at !== undefined && (
            <span>
              until <time dateTime={await_request.expires_at}>{formatTime(await_request.expires_at)}</time>
            </span>
          )}
        </span>
      </a>
    </li>
  );
}
