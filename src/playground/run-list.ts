import { signal } from '@preact/signals';
import {
  catchError,
  defer,
  EMPTY,
  filter,
  retry,
  type Subscription,
  startWith,
  switchMap,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { type Client, ClientError, type RunStatus } from '../client/client.ts';
import type { RunsResponse } from '../schema/api.ts';
import type { RunSummary } from '../schema/run.ts';
import type { RunChanges } from './run-changes.ts';

export interface RunFilter {
  readonly agent_name?: string | undefined;
  readonly status?: RunStatus | undefined;
}

const pageSize = 50;
const retryDelay = 5_000; // milliseconds
/** Rows in memory, so that a page that stays open for days does not grow. */
const maxRows = 1_000;

/** The newest runs that match a filter, newest first, kept current. */
export class RunList {
  /** Undefined until the first response. */
  readonly rows = signal<readonly RunSummary[] | undefined>(undefined);
  /** Where the next page of older runs begins; undefined if there is none. */
  readonly older = signal<string | undefined>(undefined);
  readonly #client: Client;
  readonly #changes: RunChanges;
  readonly #filter: RunFilter;
  /** Runs that changed while a page was loaded, which may have an older state of them. */
  #changed: RunSummary[] = [];

  constructor(client: Client, changes: RunChanges, filter: RunFilter) {
    this.#client = client;
    this.#changes = changes;
    this.#filter = filter;
  }

  start(): Subscription {
    const load = defer(() => {
      this.#changed = [];
      return this.#client.runs({ ...this.#filter, limit: pageSize });
    }).pipe(
      tap((page) => this.#renew(page)),
      retry({
        delay: (error) =>
          error instanceof ClientError && error.retryable ? timer(retryDelay) : throwError(() => error),
      }),
      // The server refuses the filter, for instance of an agent that it no longer has.
      catchError(() => {
        this.#show([]);
        return EMPTY;
      }),
    );
    return this.#changes
      .pipe(
        // Another list may have begun the feed.
        startWith(undefined),
        tap((run) => run !== undefined && this.#apply(run)),
        filter((run) => run === undefined),
        switchMap(() => load),
      )
      .subscribe();
  }

  /** Adds the next page of older runs. @throws ClientError */
  async loadOlder(): Promise<void> {
    const cursor = this.older.peek();
    if (cursor === undefined) return;
    const { runs, next_cursor } = await this.#client.runs({ ...this.#filter, limit: pageSize, cursor });
    const rows = this.rows.peek() ?? [];
    const known = new Set(rows.map(({ run_id }) => run_id));
    this.#show([...rows, ...runs.filter(({ run_id }) => !known.has(run_id))]);
    this.older.value = rows.length + runs.length < maxRows ? next_cursor : undefined;
  }

  /** Takes the newest page; older pages that were loaded stay. */
  #renew({ runs, next_cursor }: RunsResponse): void {
    const last = runs.at(-1)?.run_id ?? '';
    const kept = next_cursor === undefined ? [] : (this.rows.peek() ?? []).filter(({ run_id }) => run_id < last);
    if (kept.length === 0) this.older.value = next_cursor;
    this.#show([...runs, ...kept]);
    for (const run of this.#changed) this.#apply(run);
  }

  #apply(run: RunSummary): void {
    this.#changed = [...this.#changed, run].slice(-maxRows);
    const rows = this.rows.peek();
    if (rows === undefined) return;
    const { agent_name = run.agent_name, status = run.status } = this.#filter;
    const known = rows.findIndex(({ run_id }) => run_id === run.run_id);
    if (agent_name !== run.agent_name || status !== run.status) {
      if (known >= 0) this.#show(rows.toSpliced(known, 1));
      return;
    }
    // Ids sort in the order of creation. A run that is older than the rows comes with its page.
    const at = rows.findIndex(({ run_id }) => run_id < run.run_id);
    if (known >= 0) this.#show(rows.with(known, run));
    else if (at >= 0) this.#show(rows.toSpliced(at, 0, run));
    else if (this.older.peek() === undefined) this.#show([...rows, run]);
  }

  #show(rows: readonly RunSummary[]): void {
    this.rows.value = rows.slice(0, maxRows);
  }
}
