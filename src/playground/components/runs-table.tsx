import { useEffect, useId, useState } from 'preact/hooks';
import { catchError, defer, EMPTY, exhaustMap } from 'rxjs';
import type { Run, RunStatus } from '../../client/client.ts';
import { transitions } from '../../core/run-state.ts';
import { pollWhileVisible } from '../catalog.ts';
import { formatDuration, formatTime } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { ScrollBox } from './scroll-box.tsx';
import { StatusBadge } from './status-badge.tsx';

const pollInterval = 2_000; // milliseconds
const limit = 50;
const statuses = Object.keys(transitions);
const isStatus = (text: string): text is RunStatus => statuses.includes(text);

/** The newest runs of the server, filtered by agent and status, refreshed while the tab is visible. */
export function RunsTable() {
  const { client, catalog } = usePlayground();
  const [agent, setAgent] = useState('');
  const [status, setStatus] = useState<RunStatus | ''>('');
  const [runs, setRuns] = useState<readonly Run[]>();
  useEffect(() => {
    const load = defer(() =>
      client.runs({ limit, ...(agent && { agent_name: agent }), ...(status && { status }) }),
    ).pipe(catchError(() => EMPTY));
    const polling = pollWhileVisible(pollInterval)
      .pipe(exhaustMap(() => load))
      .subscribe((page) => setRuns(page.runs));
    return () => polling.unsubscribe();
  }, [client, agent, status]);
  return (
    <section class="runs" aria-labelledby="runs-title">
      <div class="row">
        <h2 id="runs-title">Runs</h2>
        <Filter
          label="Agent"
          options={catalog.agents.value?.map(({ name }) => name) ?? []}
          value={agent}
          onChange={setAgent}
        />
        <Filter
          label="Status"
          options={statuses}
          value={status}
          onChange={(value) => setStatus(isStatus(value) ? value : '')}
        />
      </div>
      {runs === undefined && <p class="note">Loading…</p>}
      {runs?.length === 0 && (
        <div class="empty">
          <p>{agent || status ? 'No run matches these filters.' : 'No runs yet.'}</p>
        </div>
      )}
      {runs !== undefined && runs.length > 0 && <Table runs={runs} />}
    </section>
  );
}

interface FilterProps {
  readonly label: string;
  readonly options: readonly string[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Filter({ label, options, value, onChange }: FilterProps) {
  const id = useId();
  return (
    <div class="filter">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">All</option>
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </div>
  );
}

function Table({ runs }: { runs: readonly Run[] }) {
  const { router } = usePlayground();
  return (
    <ScrollBox class="wide" label="Runs">
      <table>
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Agent</th>
            <th scope="col">Run</th>
            <th scope="col">Created</th>
            <th scope="col">Duration</th>
          </tr>
        </thead>
        <tbody>
          {runs.map(({ run_id, agent_name, session_id, status, created_at, finished_at }) => (
            <tr key={run_id} data-status={status}>
              <td>
                <StatusBadge status={status} />
              </td>
              <td>{agent_name}</td>
              <td>
                <a href={router.href({ agent: agent_name, session: session_id, run: run_id, view: 'chat' })}>
                  …{run_id.slice(-8)}
                </a>
              </td>
              <td>
                <time dateTime={created_at}>{formatTime(created_at)}</time>
              </td>
              <td>{formatDuration((finished_at ? Date.parse(finished_at) : Date.now()) - Date.parse(created_at))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}
