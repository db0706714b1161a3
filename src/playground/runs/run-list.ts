import { signal } from '@preact/signals';
import {
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  fromEvent,
  map,
  Observable,
  retry,
  type Subscription,
  share,
  startWith,
  switchMap,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { type Client, ClientError, type RunStatus } from '../../client/client.ts';
import { backoff, spread } from '../../core/timing.ts';
import type { RunsResponse } from '../../schema/api.ts';
import type { RunSummary } from '../../schema/run.ts';

export interface RunFilter {
  readonly agent_name?: string | undefined;
  readonly status?: RunStatus | undefined;
}

const pageSize = 50;
/** Milliseconds before what failed is tried again: they grow from the first to the longest. */
const [firstDelay, maxDelay] = [1_000, 5_000];
/** Milliseconds that a server can make the page wait at most; a timer takes no more than 24 days. */
const longest = 3_600_000;
/** Rows in memory, so that a page that stays open for days does not grow. */
const maxRows = 1_000;

/** The wait before another attempt, never shorter than the server asks. */
function pause(error: unknown, failures: number): Observable<0> {
  const { retryAfter = 0 } = error instanceof ClientError ? error : {};
  return timer(Math.min(spread(Math.max(retryAfter, backoff(failures, firstDelay, maxDelay))), longest));
}

/** The runs of the server that change; undefined where any of them may have changed. */
export type RunChanges = Observable<RunSummary | undefined>;

/**
 * The server's feed of runs, over one connection for all lists of the page. A hidden tab has none: a browser opens six
 * connections to a server over HTTP/1.1, for all its tabs together.
 */
export const watchRunChanges = (client: Pick<Client, 'watchRuns'>): RunChanges =>
  fromEvent(document, 'visibilitychange').pipe(
    startWith(undefined),
    map(() => document.visibilityState === 'visible'),
    distinctUntilChanged(),
    // The pauses also grow where each feed begins well and fails soon after.
    switchMap((visible) => (visible ? feed(client).pipe(retry({ delay: pause })) : EMPTY)),
    share(),
  );

/** The lists load their pages when the feed has begun, so no change is missed between both. */
const feed = (client: Pick<Client, 'watchRuns'>): RunChanges =>
  new Observable((subscriber) => {
    const onAny = (): void => subscriber.next(undefined);
    return client.watchRuns({ limit: 1 }, { onReady: onAny, onReset: onAny }).subscribe(subscriber);
  });

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
        delay: (error, failures) =>
          error instanceof ClientError && error.retryable ? pause(error, failures) : throwError(() => error),
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
