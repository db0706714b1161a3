import { lastValueFrom, tap } from 'rxjs';
import type { RunsFilter } from '../../client/client.ts';
import { questionText } from '../../core/parts.ts';
import type { RunStatus, RunSummary } from '../../schema/run.ts';
import { type Connection, connect } from '../connect.ts';
import { exit } from '../exit-codes.ts';
import { formatAge, formatDuration, oneLine, suggestion } from '../terminal/format.ts';
import { fitted, table, terminal } from '../terminal/terminal.ts';

export interface RunsOptions extends Connection {
  readonly agent?: string;
  readonly status?: RunStatus;
  readonly session?: string;
  readonly parked?: true;
  readonly limit: number;
  readonly watch?: boolean;
  readonly json?: boolean;
}

export async function runs({
  agent,
  status,
  session,
  parked,
  limit,
  json,
  watch,
  ...connection
}: RunsOptions): Promise<number> {
  const filter = { agent_name: agent, status, session_id: session, parked };
  if (watch) return watchRuns({ ...filter, limit: Math.min(limit, 100) }, connection, json);
  const client = connect(connection);
  // Prints page by page: the first rows appear at once, and a long list is never in memory as a whole.
  let printed = 0;
  let cursor: string | undefined;
  do {
    const page = await client.runs({ ...filter, limit: Math.min(limit - printed, 100), cursor });
    if (json) for (const run of page.runs) terminal.json(run);
    else printRuns(page.runs, printed === 0);
    printed += page.runs.length;
    cursor = page.next_cursor;
  } while (cursor !== undefined && printed < limit);
  if (printed === 0 && agent !== undefined && !json) await noteUnknown(agent, await client.agents());
  return exit.completed;
}

/** Attempts in a row to reconnect a feed that was cut. */
const retries = 6;

/** Prints the newest runs, oldest first, and then each run whose status changes. */
async function watchRuns(filter: RunsFilter, connection: Connection, json = false): Promise<number> {
  const onReset = (): void => terminal.note('Changes may be missing; the newest runs follow.', 'yellow');
  let isFirst = true;
  const print = (run: RunSummary): void => {
    if (json) terminal.json(run);
    else printRuns([run], isFirst);
    isFirst = false;
  };
  await lastValueFrom(connect(connection, retries).watchRuns(filter, { onReset }).pipe(tap(print)));
  return exit.completed;
}

async function noteUnknown(agent: string, known: readonly { readonly name: string }[]): Promise<void> {
  const names = known.map(({ name }) => name);
  if (!names.includes(agent)) terminal.note(`There is no agent ${agent} at this server.${suggestion(agent, names)}`);
}

/** A row of a run, as the list shows it. */
interface Row {
  readonly id: string;
  readonly cells: readonly string[];
  /** What it is about: the title of its input, and its error or question. */
  readonly about: string;
}

/** Minimum widths of the columns, so that all pages align: most names, a status, an age, a time. */
const widths = [16, 11, 10, 6];
const head = ['AGENT', 'STATUS', 'CREATED', 'TIME'];
/** Columns that a row with the run's id takes, and some of what the run is about. */
const wide = 110;

// On a narrow terminal the id has a line of its own: cut off, it would be of no use.
function printRuns(page: readonly RunSummary[], isFirst: boolean): void {
  const now = Date.now();
  const rows = page.map((run) => rowOf(run, now));
  if (terminal.width >= wide) {
    table(
      isFirst ? ['RUN', ...head, 'ABOUT'] : undefined,
      rows.map(({ id, cells, about }) => [id, ...cells, about]),
      [36, ...widths],
    );
    return;
  }
  if (isFirst) table(head, [], widths);
  for (const { id, cells, about } of rows) {
    table(undefined, [[...cells]], widths);
    terminal.print(fitted(`  ${oneLine(`${id}  ${about}`)}`), 'dim');
  }
}

function rowOf(run: RunSummary, now: number): Row {
  const { run_id, agent_name, status, created_at, finished_at, parked, error, await_request, title } = run;
  const time = finished_at === undefined ? undefined : Date.parse(finished_at) - Date.parse(created_at);
  const outcome = parked?.reason ?? error?.message ?? (await_request && questionText(await_request));
  return {
    id: run_id,
    cells: [
      agent_name,
      parked === undefined ? status : 'parked',
      formatAge(created_at, now),
      time === undefined ? '-' : formatDuration(time),
    ],
    about: [title && oneLine(title, 40), outcome].filter(Boolean).join(': '),
  };
}
