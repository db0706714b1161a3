import { useEffect, useId, useMemo } from 'preact/hooks';
import type { Run } from '../../client/client.ts';
import { reasonOf } from '../../client/client-error.ts';
import { messageOf } from '../../core/json.ts';
import { textOf } from '../../core/parts.ts';
import type { RunSummary } from '../../schema/run.ts';
import { runStatuses } from '../../schema/statuses.ts';
import { usePlayground } from '../app/playground.ts';
import type { Route } from '../app/router.ts';
import { StatusBadge } from '../elements/controls.tsx';
import { formatAge, formatDuration, formatExact, formatSpan, formatTime } from '../elements/format.ts';
import { useWork } from '../elements/use-work.ts';
import { RunList } from './run-list.ts';

/** The runs of the server, newest first, live; the filters are in the address. */
export function RunsTable() {
  const { client, catalog, router, runChanges } = usePlayground();
  const { ofAgent, status: given, search = '' } = router.route.value;
  const status = runStatuses.find((one) => one === given);
  const list = useMemo(
    () => new RunList(client, runChanges, { agent_name: ofAgent, status }),
    [client, runChanges, ofAgent, status],
  );
  useEffect(() => {
    const subscription = list.start();
    return () => subscription.unsubscribe();
  }, [list]);
  const rows = list.rows.value;
  const found = rows?.filter((run) => includes(run, search));
  const agents = catalog.agents.value?.map(({ name }) => name) ?? [];
  return (
    <section class="page runs" aria-labelledby="runs-title">
      <div class="row">
        <h2 id="runs-title">Runs</h2>
        <input
          type="search"
          aria-label="Search the runs"
          placeholder="Search input, error or id"
          value={search}
          onInput={({ currentTarget }) => router.replace({ search: currentTarget.value })}
        />
        <Filter
          label="Agent"
          // An address may name an agent that the server no longer has.
          options={ofAgent === undefined || agents.includes(ofAgent) ? agents : [ofAgent, ...agents]}
          value={ofAgent ?? ''}
          onChange={(value) => router.push({ ofAgent: value })}
        />
        <Filter
          label="Status"
          options={runStatuses}
          value={status ?? ''}
          onChange={(value) => router.push({ status: value })}
        />
      </div>
      {found === undefined && <p class="note">Loading…</p>}
      {found?.length === 0 && <p class="empty">{reasonForNone({ ofAgent, status, search })}</p>}
      {found !== undefined && found.length > 0 && <Table runs={found} />}
      {rows !== undefined && <Older list={list} count={rows.length} search={search} />}
    </section>
  );
}

/** Whether the text occurs in what the row shows, or in its ids. */
function includes(run: RunSummary, search: string): boolean {
  const { run_id, session_id, agent_name, title } = run;
  const text = [title, agent_name, run_id, session_id, detailOf(run)].join('\n').toLowerCase();
  return text.includes(search.trim().toLowerCase());
}

/** Why a run is parked, the error of a failed run, or the question of an awaiting one. */
function detailOf({ parked, error, await_request }: Run): string | undefined {
  if (parked !== undefined) return `Parked: ${parked.reason}`;
  if (error !== undefined) return `${reasonOf(error)}: ${error.message}`;
  return await_request && `Asks: ${textOf(await_request.message)}`;
}

function reasonForNone({ ofAgent, status, search }: Partial<Route>): string {
  if (search?.trim()) return `No loaded run contains “${search.trim()}”.`;
  return ofAgent || status ? 'No run matches these filters.' : 'No runs yet. Send an agent a message to start one.';
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
    <div class="row note">
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

const columns = ['Status', 'Agent', 'Input', 'Started', 'Duration'];

function Table({ runs }: { runs: readonly RunSummary[] }) {
  return (
    <table>
      <thead>
        <tr>
          {columns.map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <Row key={run.run_id} run={run} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ run }: { run: RunSummary }) {
  const { router } = usePlayground();
  const { run_id, agent_name, session_id, status, parked, created_at, title } = run;
  const href = router.href({ agent: agent_name, session: session_id, run: run_id, view: 'chat' });
  const detail = detailOf(run);
  return (
    // The link is the control; the row is a larger target for pointers.
    <tr
      data-status={status}
      data-parked={parked !== undefined}
      onClick={({ target }) => {
        const isLink = target instanceof Element && target.closest('a') !== null;
        if (!isLink && getSelection()?.isCollapsed !== false) location.hash = href;
      }}
    >
      <td>
        <StatusBadge status={status} />
      </td>
      <td class="agent">{agent_name}</td>
      <td class="input">
        <a href={href}>{title.trim() || `Run …${run_id.slice(-8)}`}</a>
        {detail !== undefined && (
          <p class="note clamp" title={detail}>
            {detail}
          </p>
        )}
      </td>
      <td class="time note">
        <RelativeTime time={created_at} />
      </td>
      <td class="time note">
        <Duration run={run} />
      </td>
    </tr>
  );
}

/** From creation to the end, or until now. */
function Duration({ run: { created_at, finished_at } }: { run: RunSummary }) {
  const { now } = usePlayground();
  const end = finished_at === undefined ? now.value : Date.parse(finished_at);
  return <span>{formatDuration(Math.max(0, end - Date.parse(created_at)))}</span>;
}

/** Loads the next page of older runs. A search looks only at loaded runs, and says so. */
function Older({ list, count, search }: { list: RunList; count: number; search: string }) {
  const { begin, error } = useWork();
  return (
    <footer class="row">
      {list.older.value !== undefined && (
        <button type="button" onClick={() => begin(() => list.loadOlder())}>
          Load older runs
        </button>
      )}
      {search.trim() !== '' && <span class="note">Searched {count} loaded runs.</span>}
      {error !== undefined && <span class="problem">{messageOf(error)}</span>}
    </footer>
  );
}

/** The runs that wait for the reply of a person, each with its question; the one that waits longest is first. */
export function AwaitingList() {
  const { awaiting } = usePlayground();
  const runs = awaiting.rows.value?.toSorted((a, b) => askedAt(a).localeCompare(askedAt(b)));
  return (
    <section class="page" aria-labelledby="awaiting-title">
      <h2 id="awaiting-title">Awaiting a reply</h2>
      {runs === undefined && <p class="note">Loading…</p>}
      {runs?.length === 0 && <p class="empty">No run awaits a reply. Questions of agents are listed here.</p>}
      <ul class="questions stack">
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
        {title !== '' && <span class="note clamp">Input: {title}</span>}
        <small class="figures">
          <span>{agent_name}</span>
          <span>
            waits for <RelativeTime time={askedAt(run)} span />
          </span>
          {await_request?.expires_at !== undefined && (
            <span>
              until <time dateTime={await_request.expires_at}>{formatTime(await_request.expires_at)}</time>
            </span>
          )}
        </small>
      </a>
    </li>
  );
}

interface RelativeTimeProps {
  readonly time: string;
  /** `12 s` in the place of `12 s ago`. */
  readonly span?: boolean;
}

/** The age of a time, which grows; the exact time is its title. */
function RelativeTime({ time, span = false }: RelativeTimeProps) {
  const { now } = usePlayground();
  const age = now.value - Date.parse(time);
  return (
    <time dateTime={time} title={formatExact(time)}>
      {span ? formatSpan(age) : formatAge(age)}
    </time>
  );
}
