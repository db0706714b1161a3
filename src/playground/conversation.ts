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
import type { Catalog } from './catalog.ts';
import type { Memory } from './memory.ts';
import type { Place, Places } from './place.ts';
import { RunRecord } from './record.ts';
import { historyOf, saidIn } from './said.ts';

/** The run that the page looks at. A new object each time that the record has changed: views compare by identity. */
export interface Followed {
  readonly record: RunRecord;
  readonly problem?: string | undefined;
}

export interface ConversationParts {
  readonly client: Client;
  readonly places: Places;
  readonly memory: Memory;
  readonly catalog: Catalog;
}

/** Runs of a session that are shown. */
const shown = 100;
/** Events after which a run is shown at a slower pace, since reading its Markdown takes longer than a frame. */
const long = 5_000;
const pace = 200; // milliseconds

/** The session that the page is in: its runs, the one that is followed, and what is said to them. */
export class Conversation {
  readonly #parts: ConversationParts;
  readonly #changed = new Subject<void>();
  readonly #kept = signal<readonly Run[]>([]);
  /** The run that this page asked for last, and when. */
  #asked: { readonly run_id: string; readonly at: number } | undefined;
  /** Runs whose input was looked for. */
  readonly #recalled = new Set<string>();
  /** The session's runs that are over, with their output. */
  readonly #over = new Map<string, Run>();
  readonly followed = signal<Followed | undefined>(undefined);
  /** Why the last thing that was said did not get through. */
  readonly problem = signal<string | undefined>(undefined);
  readonly sending = signal(false);
  /** The session's runs, oldest first, each as it is known best. */
  readonly runs = computed(() => {
    const { session } = this.#parts.places.now.value;
    const live = this.followed.value?.record.run;
    const kept = this.#kept.value.filter((run) => run.session_id === session);
    if (live === undefined || (session !== undefined && live.session_id !== session)) return kept;
    const at = kept.findIndex(({ run_id }) => run_id === live.run_id);
    return at < 0 ? [...kept, live] : kept.with(at, live);
  });

  constructor(parts: ConversationParts) {
    this.#parts = parts;
  }

  begin(): Subscription {
    const { places, memory } = this.#parts;
    const place = new Observable<Place>((subscriber) => places.now.subscribe((now) => subscriber.next(now)));
    const running = new Subscription();
    running.add(
      place
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
    running.add(
      place
        .pipe(
          map(({ session }) => session),
          distinctUntilChanged(),
          switchMap((session) => this.#runsOf(session)),
        )
        .subscribe((runs) => this.#show(runs)),
    );
    // Another tab has said something in this session.
    running.add(memory.inputs.subscribe(() => this.#changed.next()));
    return running;
  }

  /** Says something to the agent: a run begins. Resolves to false where it did not; `problem` says why. */
  say(agent: string, parts: readonly MessagePart[], title: string, idempotency_key: string): Promise<boolean> {
    return this.#send(async ({ client, memory, places }) => {
      const { session } = places.now.value;
      const at = performance.now();
      const run = await client.start(agent, parts, { idempotency_key, ...(session && { session_id: session }) });
      this.#asked = { run_id: run.run_id, at };
      memory.said({ [run.run_id]: parts });
      if (run.session_id) memory.session({ id: run.session_id, agent, title, at: run.created_at });
      places.go({ agent, session: run.session_id, run: run.run_id, view: 'chat' });
    });
  }

  cancel(run_id: string): Promise<boolean> {
    return this.#send(async ({ client }) => {
      await client.cancel(run_id);
    });
  }

  /** Answers what a run asks. @throws ClientError what the server has against it */
  async reply(run_id: string, part: MessagePart): Promise<void> {
    await this.#parts.client.resume(run_id, part);
    this.#changed.next();
  }

  async #send(work: (parts: ConversationParts) => Promise<void>): Promise<boolean> {
    this.sending.value = true;
    this.problem.value = undefined;
    try {
      await work(this.#parts);
      return true;
    } catch (error) {
      this.problem.value = error instanceof ClientError ? error.message : String(error);
      return false;
    } finally {
      this.sending.value = false;
    }
  }

  // The record is told of each event at once, and shown once a frame, however many came. A tab that nobody sees has no
  // frames, and costs no more than the record.
  #follow(run_id: string): Observable<Followed> {
    const { client, places, catalog } = this.#parts;
    const record = new RunRecord(run_id, this.#asked?.run_id === run_id ? this.#asked.at : undefined);
    return client.watch(run_id).pipe(
      timestamp({ now: () => performance.now() }),
      tap(({ value, timestamp }) => {
        record.add(value, timestamp);
        if (!('run' in value)) return;
        if (record.total === 1) places.refine({ agent: value.run.agent_name, session: value.run.session_id });
        if (!isFinal(value.run.status)) return;
        catalog.refresh();
        this.#changed.next();
      }),
      startWith(undefined),
      audit(() => timer(record.total < long ? 0 : pace, animationFrameScheduler)),
      map(() => ({ record })),
      catchError((error: Error) => of({ record, problem: error.message })),
    );
  }

  #runsOf(session: string | undefined): Observable<readonly Run[]> {
    this.#recalled.clear();
    this.#over.clear();
    if (session === undefined) return of([]);
    const ask = defer(() => this.#parts.client.runs({ session_id: session, limit: shown })).pipe(
      switchMap(({ runs }) => Promise.all(runs.toReversed().map((run) => this.#withOutput(run)))),
      catchError(() => EMPTY),
    );
    return this.#changed.pipe(
      startWith(undefined),
      switchMap(() => ask),
    );
  }

  /** A run of a list, which leaves the output out, as a whole. */
  async #withOutput(run: Run): Promise<Run> {
    if (run.output.length > 0 || !isSettled(run.status)) return run;
    const known = this.#over.get(run.run_id);
    if (known !== undefined) return known;
    const whole = await this.#parts.client.get(run.run_id).catch(() => run);
    if (isFinal(whole.status) && whole !== run) this.#over.set(run.run_id, whole);
    return whole;
  }

  #show(runs: readonly Run[]): void {
    const { places } = this.#parts;
    const before = this.#kept.peek().at(-1)?.run_id;
    this.#kept.value = runs;
    void this.#recall(runs);
    const { run } = places.now.peek();
    const newest = runs.at(-1)?.run_id;
    // Who comes to a session comes to its newest run, and who has seen that to its end goes on to the one after it.
    const live = this.followed.peek()?.record.run;
    const seen = live !== undefined && isFinal(live.status) && run === live.run_id && run === before;
    if (newest !== undefined && (run === undefined || seen)) places.refine({ run: newest });
  }

  /** Learns from the session what its runs were given, where this browser did not give it. */
  async #recall(runs: readonly Run[]): Promise<void> {
    const { client, memory } = this.#parts;
    const unknown = runs.filter(({ run_id, status }) => status === 'completed' && !(run_id in memory.inputs.peek()));
    const news = unknown.filter(({ run_id }) => !this.#recalled.has(run_id));
    const session = news[0]?.session_id;
    if (session === undefined) return;
    for (const { run_id } of news) this.#recalled.add(run_id);
    // Without it the conversation lacks what was said to the agent, and the page works.
    const history = await historyOf(client, session).catch(() => []);
    const said = Object.entries(saidIn(history, runs)).filter(([run_id]) => this.#recalled.has(run_id));
    if (said.length > 0) memory.said(Object.fromEntries(said));
  }
}
