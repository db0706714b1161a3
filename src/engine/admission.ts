import { v7 as uuid } from 'uuid';
import type { Agent } from '../core/agent.ts';
import { checkContentTypes } from '../core/content-type.ts';
import { runInside } from '../core/encode.ts';
import { fail } from '../core/errors.ts';
import { receiveMessage } from '../core/messages.ts';
import type { RunRow } from '../core/store.ts';
import type { RunCreateRequest } from '../schema/api.ts';
import type { Run } from '../schema/run.ts';
import type { Begun, Wishes } from './begun.ts';
import type { Commits } from './commits.ts';
import { Execution, type Services } from './execution.ts';
import { type Idempotency, type Once, once } from './idempotency.ts';
import type { LiveRuns } from './live-runs.ts';
import { RunLog } from './run-log.ts';
import type { SessionTurns } from './session-turns.ts';

/** Lets new runs in. */
export class Admission {
  readonly #commits: Commits;
  readonly #services: Services;
  readonly #turns: SessionTurns;
  readonly #live: LiveRuns;
  readonly #idempotency: Idempotency;

  constructor(commits: Commits, services: Services, turns: SessionTurns, live: LiveRuns, idempotency: Idempotency) {
    this.#commits = commits;
    this.#services = services;
    this.#turns = turns;
    this.#live = live;
    this.#idempotency = idempotency;
  }

  /**
   * Makes a run and starts it, now or when its turn comes.
   * @throws RivuletError `agent_unknown`, `misfit`, `content_type_refused`, `session_mismatch`, `session_busy`,
   * `key_reused`, `too_busy`, `store_failed`
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
    const { running } = this.#services.limits;
    if (running > 0 && this.#live.working >= running) throw fail('too_busy', running);
    const agent = this.#services.registry.get(request.agent_name);
    const now = this.#services.now();
    const input = request.input.map((message, index) => receiveMessage(message, `input[${index}]`, now));
    checkContentTypes(agent.manifest.name, agent.manifest.input_content_types ?? ['*/*'], input);
    const row = newRow(agent, sessionOf(request), now, wishes);
    const if_busy = wishes.if_busy ?? agent.options.if_busy ?? 'parallel';
    const before = await this.#turns.come(row.session_id, row.run_id, if_busy);
    const queued_at = before.size > 0 ? now : null;
    const log = new RunLog(this.#commits, { ...row, queued_at }, { input });
    log.attach({
      ...this.#services.sessions.adopt(request.session),
      ...this.#idempotency.keep(key, row.run_id, 0, now),
    });
    const execution = new Execution(agent, newRun(row), input, log, this.#services);
    const created = runInside(execution.create());
    try {
      await this.#live.enter(execution);
    } catch (error) {
      this.#turns.over(row);
      throw error;
    }
    if (queued_at === null) execution.start();
    else this.#turns.wait(execution, before);
    return { run_id: row.run_id, run: created, after: 0 };
  }
}

function sessionOf({ session_id, session }: RunCreateRequest): string {
  const [a, b] = [session_id?.toLowerCase(), session?.id.toLowerCase()];
  if (a !== undefined && b !== undefined && a !== b) throw fail('session_mismatch', a, b);
  return a ?? b ?? uuid();
}

const newRow = ({ manifest, options }: Agent, session_id: string, created_at: string, wishes: Wishes): RunRow => ({
  run_id: uuid(),
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
