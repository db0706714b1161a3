import { computed, type ReadonlySignal, signal } from '@preact/signals';
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
import { type Client, ClientError, type MessagePart, type Run, type RunDetails } from '../../client/client.ts';
import { isFinal, isSettled } from '../../core/run-state.ts';
import { replyPart } from '../../forms/reply-form.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import type { StoredSessions } from '../app/browser-storage.ts';
import type { Catalog } from '../app/catalog.ts';
import type { Connection } from '../app/connection.ts';
import type { Router } from '../app/router.ts';
import { RunRecord } from '../inspector/run-record.ts';
import { Draft, titleOf } from './draft.ts';

/** The run that the page follows. A new object after each change of the record, because views compare by identity. */
export interface FollowedRun {
  readonly record: RunRecord;
  readonly problem?: string | undefined;
}

export interface ConversationOptions {
  readonly client: Client;
  readonly router: Router;
  readonly storage: StoredSessions;
  readonly catalog: Catalog;
  readonly connection: Connection;
}

/** A question that the followed run awaits the reply to. */
export interface OpenQuestion {
  readonly run: Run;
  readonly request: AwaitRequest;
}

/** Runs of a session that the page shows. */
const maxRuns = 100;
/** Events after which a run is rendered less often, because parsing its Markdown takes longer than a frame. */
const longRun = 5_000;
const longRunInterval = 200; // milliseconds

type Input = readonly MessagePart[];

/** The value of a signal, and each later one. */
const valuesOf = <T>(source: ReadonlySignal<T>): Observable<T> =>
  new Observable((subscriber) => source.subscribe((value) => subscriber.next(value)));

const partsOf = ({ input }: RunDetails): Input => input.flatMap(({ parts }) => parts);

/** The current session: its runs, the followed run, and the messages that the user sends. */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #changed = new Subject<void>();
  readonly #listed = signal<readonly Run[]>([]);
  /** The run that this page created last, and when. */
  #created: { readonly run_id: string; readonly at: number } | undefined;
  /** The error whose message is the problem. */
  #failure: unknown;
  /** The session's final runs, with their output. */
  readonly #finalRuns = new Map<string, Run>();
  readonly followed = signal<FollowedRun | undefined>(undefined);
  /** The error of the last message that was not sent. */
  readonly problem = signal<string | undefined>(undefined);
  readonly sending = signal(false);
  /** The inputs of the session's runs, by run id. */
  readonly inputs = signal<Readonly<Record<string, Input>>>({});
  /** The next message. */
  readonly draft = new Draft();
  /** The run whose question the user has left, to start another run. */
  readonly left = signal<string | undefined>(undefined);
  /** The question that the composer answers. */
  readonly question = computed<OpenQuestion | undefined>(() => {
    const run = this.followed.value?.record.run;
    if (run?.await_request === undefined || run.status !== 'awaiting') return undefined;
    return { run, request: run.await_request };
  });
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
    const { router, storage, connection } = this.#options;
    const { route } = router;
    const subscriptions = new Subscription();
    subscriptions.add(
      valuesOf(route)
        .pipe(
          // An address with the run alone gets its agent and session from the run's first event.
          distinctUntilChanged((last, next) => last.run === next.run && next.agent !== undefined),
          switchMap(({ run: run_id }) => {
            this.left.value = undefined;
            return run_id === undefined ? of(undefined) : this.#follow(run_id);
          }),
        )
        .subscribe((followed) => {
          this.followed.value = followed;
        }),
    );
    const session = computed(() => route.value.session);
    subscriptions.add(
      valuesOf(session)
        .pipe(switchMap((id) => this.#runsOf(id)))
        .subscribe((runs) => this.#update(runs)),
    );
    const place = computed(() => `${route.value.agent} ${route.value.run}`);
    subscriptions.add(
      place.subscribe(() => {
        this.problem.value = undefined;
      }),
    );
    // What failed without a connection may succeed now.
    subscriptions.add(
      connection.disconnection.subscribe((lost) => {
        const isOver = lost === undefined && this.#failure instanceof ClientError && this.#failure.retryable;
        if (isOver) this.problem.value = undefined;
      }),
    );
    // Another tab may have sent a message in this session.
    subscriptions.add(storage.list.subscribe(() => this.#changed.next()));
    return subscriptions;
  }

  /** Sends the draft to the agent, and clears it when the run is created. */
  async sendDraft(agent: string): Promise<void> {
    if (this.draft.empty || this.sending.peek()) return;
    if (await this.send(agent, this.draft.parts(), this.draft.key)) this.draft.clear();
  }

  /** Sends a message to the agent, which creates a run. Resolves to false on failure; `problem` has the reason. */
  send(agent: string, input: Input | Promise<Input>, idempotency_key?: string): Promise<boolean> {
    return this.#attempt(async ({ client, storage, router }) => {
      const parts = await input;
      const { session } = router.route.value;
      const at = performance.now();
      const run = await client.start(agent, parts, {
        ...(idempotency_key !== undefined && { idempotency_key }),
        ...(session !== undefined && { session_id: session }),
      });
      this.#created = { run_id: run.run_id, at };
      if (run.session_id) storage.add({ id: run.session_id, agent, title: titleOf(parts), createdAt: run.created_at });
      router.push({ agent, session: run.session_id, run: run.run_id, view: 'chat' });
      this.#addInput(run.run_id, parts);
    });
  }

  cancel(run_id: string): Promise<boolean> {
    return this.#attempt(({ client }) => client.cancel(run_id));
  }

  /** Has a parked run tried again. */
  retry(run_id: string): Promise<boolean> {
    return this.#attempt(({ client }) => client.retry(run_id));
  }

  /** Makes a run that repeats another one up to an event, and opens it. @throws ClientError if the server refuses it */
  async repeat(run_id: string, after: number): Promise<void> {
    const { client, router } = this.#options;
    const at = performance.now();
    const run = await client.again(run_id, { after });
    this.#created = { run_id: run.run_id, at };
    router.push({ agent: run.agent_name, session: run.session_id, run: run.run_id });
  }

  /** Sends the input of a run again, in the same session. */
  async runAgain({ run_id, agent_name }: Run): Promise<void> {
    await this.send(agent_name, this.#inputOf(run_id));
  }

  /** Puts the input of a run into the draft, to be edited. */
  async edit({ run_id }: Run): Promise<void> {
    await this.#attempt(async () => this.draft.fill(await this.#inputOf(run_id)));
    document.getElementById('message')?.focus();
  }

  async #inputOf(run_id: string): Promise<readonly MessagePart[]> {
    return this.inputs.peek()[run_id] ?? partsOf(await this.#options.client.get(run_id));
  }

  /** Leaves the question of a run, so that the composer starts another run; undefined returns to it. */
  leave(run_id: string | undefined): void {
    this.left.value = run_id;
  }

  /** Replies to a question. @throws ClientError if the server refuses the reply */
  async reply({ run, request }: OpenQuestion, value: unknown): Promise<void> {
    await this.#options.client.resume(run.run_id, replyPart(request.schema, value), { channel: 'playground' });
    this.#changed.next();
  }

  async #attempt(work: (options: ConversationOptions) => Promise<unknown>): Promise<boolean> {
    this.sending.value = true;
    this.problem.value = undefined;
    try {
      await work(this.#options);
      return true;
    } catch (error) {
      this.#failure = error;
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
    this.inputs.value = {};
    this.#finalRuns.clear();
    if (session === undefined) return of([]);
    const load = defer(() => this.#options.client.runs({ session_id: session, limit: maxRuns })).pipe(
      switchMap(({ runs }) => Promise.all(runs.toReversed().map((run) => this.#whole(run)))),
      catchError(() => EMPTY),
    );
    return this.#changed.pipe(
      startWith(undefined),
      switchMap(() => load),
    );
  }

  /** The whole run of a list entry, which has no input and no output. Those of a run at work follow with its events. */
  async #whole(run: Run): Promise<Run> {
    const { run_id } = run;
    const known = this.#finalRuns.get(run_id);
    if (known !== undefined || (!isSettled(run.status) && run_id in this.inputs.peek())) return known ?? run;
    const whole = await this.#options.client.get(run_id).catch(() => undefined);
    if (whole === undefined) return run;
    this.#addInput(run_id, partsOf(whole));
    if (isFinal(whole.status)) this.#finalRuns.set(run_id, whole);
    return isSettled(whole.status) ? whole : run;
  }

  #addInput(run_id: string, parts: readonly MessagePart[]): void {
    if (!(run_id in this.inputs.peek())) this.inputs.value = { ...this.inputs.peek(), [run_id]: parts };
  }

  #update(runs: readonly Run[]): void {
    const { router } = this.#options;
    const previousNewest = this.#listed.peek().at(-1)?.run_id;
    this.#listed.value = runs;
    const { run } = router.route.peek();
    const newest = runs.at(-1)?.run_id;
    // Opens the newest run of a session, and moves on to a newer one when the followed run is final.
    const live = this.followed.peek()?.record.run;
    const followsFinal = live !== undefined && isFinal(live.status) && run === live.run_id && run === previousNewest;
    if (newest !== undefined && (run === undefined || followsFinal)) router.replace({ run: newest });
  }
}
