import type { Agent } from '../../core/agent.ts';
import { checkContentTypes } from '../../core/content-type.ts';
import { encode, runInside } from '../../core/encode.ts';
import { fail, RivuletError } from '../../core/errors.ts';
import { receiveMessage } from '../../core/messages.ts';
import type { RunRow } from '../../core/store.ts';
import type { RunCreateRequest } from '../../schema/api.ts';
import type { Run } from '../../schema/run.ts';
import { Execution } from '../execution/execution.ts';
import type { Services } from '../execution/services.ts';
import { newId } from '../ids.ts';
import type { Commits } from '../log/group-commit.ts';
import { RunLog } from '../log/run-log.ts';
import type { LiveRuns } from './active-runs.ts';
import type { Begun, Wishes } from './begun.ts';
import type { Executor } from './executor.ts';
import { type Idempotency, type Once, once } from './idempotency.ts';
import type { SessionTurns } from './session-queue.ts';

/** How often a run that is to have its session for itself looks again, when another one was faster. */
const attempts = 5;

/** Lets new runs in. */
export class Admission {
  readonly #commits: Commits;
  readonly #services: Services;
  readonly #turns: SessionTurns;
  readonly #live: LiveRuns;
  readonly #executor: Executor;
  readonly #idempotency: Idempotency;
  readonly #cancel: (run_id: string) => Promise<unknown>;

  constructor(
    commits: Commits,
    services: Services,
    turns: SessionTurns,
    live: LiveRuns,
    executor: Executor,
    idempotency: Idempotency,
    cancel: (run_id: string) => Promise<unknown>,
  ) {
    this.#commits = commits;
    this.#services = services;
    this.#turns = turns;
    this.#live = live;
    this.#executor = executor;
    this.#idempotency = idempotency;
    this.#cancel = cancel;
  }

  /**
   * Makes a run and starts it, now or when its turn comes.
   * @throws RivuletError `agent_unknown`, `misfit`, `content_type_refused`, `session_mismatch`, `session_busy`,
   * `key_reused`, `too_busy`, `store_failed`, `store_away`
   */
  async create(request: RunCreateRequest, wishes: Wishes = {}): Promise<Begun> {
    const { idempotency_key } = wishes;
    const key = idempotency_key === undefined ? undefined : once('runs', idempotency_key, request);
    return this.#idempotency.once(
      key,
      async ({ run_id, after }) => ({ run_id, run: await this.#live.json(run_id), after }),
      () => this.#create(request, wishes, key),
    );
  }

  async #create(request: RunCreateRequest, wishes: Wishes, key: Once | undefined): Promise<Begun> {
    const { limits, dispatcher, registry, sessions } = this.#services;
    // Of many processes each takes what it has slots for; what is more waits with the dispatcher.
    if (!dispatcher.shared && limits.running > 0 && this.#live.working >= limits.running)
      throw fail('too_busy', limits.running);
    this.#commits.check();
    const agent = registry.get(request.agent_name);
    const now = this.#services.now();
    const input = request.input.map((message, index) => receiveMessage(message, `input[${index}]`, now));
    checkContentTypes(agent.manifest.name, agent.manifest.input_content_types ?? ['*/*'], input);
    const made = newRow(agent, sessionOf(request), now, wishes);
    const if_busy = wishes.if_busy ?? agent.options.if_busy ?? 'parallel';
    for (let attempt = 1; ; attempt += 1) {
      const before = await this.#turns.come(made.session_id, made.run_id, if_busy);
      const row = { ...made, queued_at: before.size > 0 ? now : null };
      // Another process may have found the session free as well: the store lets one of the two begin.
      const alone = if_busy !== 'parallel' && row.queued_at === null;
      const log = new RunLog(this.#commits, row, { input, ...(alone && { when: 'alone' }) });
      log.attach({ ...sessions.adopt(request.session), ...this.#idempotency.keep(key, row.run_id, 0, now) });
      try {
        const run =
          dispatcher.shared || row.queued_at !== null
            ? await this.#leave(log, before)
            : await this.#begin(new Execution(agent, newRun(row), input, log, this.#services));
        return { run_id: row.run_id, run, after: 0 };
      } catch (error) {
        this.#turns.over(row);
        const refused = error instanceof RivuletError && error.kind === 'lost_race';
        if (!alone || !refused || attempt === attempts) throw error;
      }
    }
  }

  /** The run begins in this process. */
  async #begin(execution: Execution): Promise<string> {
    const created = runInside(execution.create());
    await this.#live.enter(execution);
    this.#executor.offer(execution.run.run_id);
    return created;
  }

  /** The run is only written down; whoever takes it, when its turn has come, finds it in the store. */
  async #leave(log: RunLog, before: ReadonlySet<string>): Promise<string> {
    const run = newRun(log.row);
    log.append(encode({ type: 'run.created', run }), { status: 'created', finished_at: null, due: null });
    await this.#commits.kept(log).catch((error: unknown) => {
      // Its client is told that there is no run, so there must be none, should the store take it in the end.
      if (error instanceof RivuletError && error.kind === 'store_away') this.#withdraw(log);
      throw error;
    });
    const row = { ...log.row };
    if (row.queued_at === null) this.#executor.offer(row.run_id);
    else this.#executor.queue(row, before);
    this.#turns.left(row);
    return JSON.stringify(run);
  }

  #withdraw(log: RunLog): void {
    const { run_id } = log.row;
    log
      .flushed()
      .then(() => this.#cancel(run_id))
      .catch((error: unknown) => this.#services.logFor(run_id).warn(`could not be withdrawn: ${String(error)}`));
  }
}

function sessionOf({ session_id, session }: RunCreateRequest): string {
  const [a, b] = [session_id?.toLowerCase(), session?.id.toLowerCase()];
  if (a !== undefined && b !== undefined && a !== b) throw fail('session_mismatch', a, b);
  return a ?? b ?? newId();
}

const newRow = ({ manifest, options }: Agent, session_id: string, created_at: string, wishes: Wishes): RunRow => ({
  run_id: newId(),
  agent_name: manifest.name,
  session_id,
  owner: null,
  epoch: 1,
  status: 'created',
  created_at,
  finished_at: null,
  tier: options.durable === true ? 'durable' : 'pinned',
  attempts: 0,
  queued_at: null,
  due: null,
  on_disconnect: wishes.on_disconnect ?? options.on_disconnect ?? 'continue',
  last: 0,
  snapshot: 0,
});

const newRun = ({ run_id, agent_name, session_id, created_at }: RunRow): Run => ({
  run_id,
  agent_name,
  session_id,
  status: 'created',
  output: [],
  created_at,
});
