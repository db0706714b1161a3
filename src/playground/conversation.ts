import { computed, signal } from '@preact/signals';
import {
  animationFrameScheduler,
  audit,
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  map,
  Observable,
  of,
  Subject,
  Subscription,
  startWith,
  switchMap,
  tap,
  timer,
  timestamp,
} from 'rxjs';
import { type Client, ClientError, type MessagePart, type Run } from '../client/client.ts';
import { isFinal, isSettled } from '../core/run-state.ts';
import type { BrowserStorage } from './browser-storage.ts';
import type { Catalog } from './catalog.ts';
import type { Route, Router } from './router.ts';
import { RunRecord } from './run-record.ts';
import { inputsFrom, readHistory } from './session-history.ts';

/** The run that the page follows. A new object after each change of the record, because views compare by identity. */
export interface FollowedRun {
  readonly record: RunRecord;
  readonly problem?: string | undefined;
}

export interface ConversationOptions {
  readonly client: Client;
  readonly router: Router;
  readonly storage: BrowserStorage;
  readonly catalog: Catalog;
}

/** Runs of a session that the page shows. */
const maxRuns = 100;
/** Events after which a run is rendered less often, because parsing its Markdown takes longer than a frame. */
const longRun = 5_000;
const longRunInterval = 200; // milliseconds

/** The current session: its runs, the followed run, and the messages that the user sends. */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #changed = new Subject<void>();
  readonly #listed = signal<readonly Run[]>([]);
  /** The run that this page created last, and when. */
  #created: { readonly run_id: string; readonly at: number } | undefined;
  /** Runs whose input was looked up in the session's history. */
  readonly #lookedUp = new Set<string>();
  /** The session's final runs, with their output. */
  readonly #finalRuns = new Map<string, Run>();
  readonly followed = signal<FollowedRun | undefined>(undefined);
  /** The error of the last message that was not sent. */
  readonly problem = signal<string | undefined>(undefined);
  readonly sending = signal(false);
  /** The session's runs, oldest first; the followed one with its live state. */
  readonly runs = computed(() => {
    const { session } = this.#options.router.route.value;
    const live = this.followed.value?.record.run;
    const listed = this.#listed.value.filter((run) => run.session_id === session);
    if (live === undefined || (session !== undefined && live.session_id !== session)) return listed;
    const at = listed.findIndex(({ run_id }) => run_id === live.run_id);
    return at < 0 ? [...listed, live] : listed.with(at, live);
  });

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  start(): Subscription {
    const { router, storage } = this.#options;
    const route = new Observable<Route>((subscriber) => router.route.subscribe((value) => subscriber.next(value)));
    const subscriptions = new Subscription();
    subscriptions.add(
      route
        .pipe(
          map(({ run }) => run),
          distinctUntilChanged(),
          switchMap((run_id) => {
            this.problem.value = undefined;
            return run_id === undefined ? of(undefined) : this.#follow(run_id);
          }),
        )
        .subscribe((followed) => {
          this.followed.value = followed;
        }),
    );
    subscriptions.add(
      route
        .pipe(
          map(({ session }) => session),
          distinctUntilChanged(),
          switchMap((session) => this.#runsOf(session)),
        )
        .subscribe((runs) => this.#update(runs)),
    );
    // Another tab may have sent a message in this session.
    subscriptions.add(storage.inputs.subscribe(() => this.#changed.next()));
    return subscriptions;
  }

  /** Sends a message to the agent, which creates a run. Resolves to false on failure; `problem` has the reason. */
  send(agent: string, parts: readonly MessagePart[], title: string, idempotency_key: string): Promise<boolean> {
    return this.#attempt(async ({ client, storage, router }) => {
      const { session } = router.route.value;
      const at = performance.now();
      const run = await client.start(agent, parts, { idempotency_key, ...(session && { session_id: session }) });
      this.#created = { run_id: run.run_id, at };
      storage.addInputs({ [run.run_id]: parts });
      if (run.session_id) storage.addSession({ id: run.session_id, agent, title, createdAt: run.created_at });
      router.push({ agent, session: run.session_id, run: run.run_id, view: 'chat' });
    });
  }

  cancel(run_id: string): Promise<boolean> {
    return this.#attempt(async ({ client }) => {
      await client.cancel(run_id);
    });
  }

  /** Replies to a run that awaits. @throws ClientError if the server refuses the reply */
  async reply(run_id: string, part: MessagePart): Promise<void> {
    await this.#options.client.resume(run_id, part);
    this.#changed.next();
  }

  async #attempt(work: (options: ConversationOptions) => Promise<void>): Promise<boolean> {
    this.sending.value = true;
    this.problem.value = undefined;
    try {
      await work(this.#options);
      return true;
    } catch (error) {
      this.problem.value = error instanceof ClientError ? error.message : String(error);
      return false;
    } finally {
      this.sending.value = false;
    }
  }

  // The record gets each event at once; the page renders at most once a frame. A hidden tab has no frames, and does not
  // render.
  #follow(run_id: string): Observable<FollowedRun> {
    const { client, router, catalog } = this.#options;
    const record = new RunRecord(run_id, this.#created?.run_id === run_id ? this.#created.at : undefined);
    return client.watch(run_id).pipe(
      timestamp({ now: () => performance.now() }),
      tap(({ value, timestamp }) => {
        record.add(value, timestamp);
        if (!('run' in value)) return;
        if (record.eventCount === 1) router.replace({ agent: value.run.agent_name, session: value.run.session_id });
        if (!isFinal(value.run.status)) return;
        catalog.refresh();
        this.#changed.next();
      }),
      startWith(undefined),
      audit(() => timer(record.eventCount < longRun ? 0 : longRunInterval, animationFrameScheduler)),
      map(() => ({ record })),
      catchError((error: Error) => of({ record, problem: error.message })),
    );
  }

  #runsOf(session: string | undefined): Observable<readonly Run[]> {
    this.#lookedUp.clear();
    this.#finalRuns.clear();
    if (session === undefined) return of([]);
    const load = defer(() => this.#options.client.runs({ session_id: session, limit: maxRuns })).pipe(
      switchMap(({ runs }) => Promise.all(runs.toReversed().map((run) => this.#withOutput(run)))),
      catchError(() => EMPTY),
    );
    return this.#changed.pipe(
      startWith(undefined),
      switchMap(() => load),
    );
  }

  /** The whole run of a list entry, which has no output. */
  async #withOutput(run: Run): Promise<Run> {
    if (run.output.length > 0 || !isSettled(run.status)) return run;
    const known = this.#finalRuns.get(run.run_id);
    if (known !== undefined) return known;
    const whole = await this.#options.client.get(run.run_id).catch(() => run);
    if (isFinal(whole.status) && whole !== run) this.#finalRuns.set(run.run_id, whole);
    return whole;
  }

  #update(runs: readonly Run[]): void {
    const { router } = this.#options;
    const previousNewest = this.#listed.peek().at(-1)?.run_id;
    this.#listed.value = runs;
    void this.#lookUpInputs(runs);
    const { run } = router.route.peek();
    const newest = runs.at(-1)?.run_id;
    // Opens the newest run of a session, and moves on to a newer one when the followed run is final.
    const live = this.followed.peek()?.record.run;
    const followsFinal = live !== undefined && isFinal(live.status) && run === live.run_id && run === previousNewest;
    if (newest !== undefined && (run === undefined || followsFinal)) router.replace({ run: newest });
  }

  /** Reads the inputs of runs that another browser created from the session's history. */
  async #lookUpInputs(runs: readonly Run[]): Promise<void> {
    const { client, storage } = this.#options;
    const unknown = runs.filter(({ run_id, status }) => status === 'completed' && !(run_id in storage.inputs.peek()));
    const remaining = unknown.filter(({ run_id }) => !this.#lookedUp.has(run_id));
    const session = remaining[0]?.session_id;
    if (session === undefined) return;
    for (const { run_id } of remaining) this.#lookedUp.add(run_id);
    // Without it, the page shows the runs without their inputs.
    const history = await readHistory(client, session).catch(() => []);
    const found = Object.entries(inputsFrom(history, runs)).filter(([run_id]) => this.#lookedUp.has(run_id));
    if (found.length > 0) storage.addInputs(Object.fromEntries(found));
  }
}
