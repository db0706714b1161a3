import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { errorTable } from '../../core/errors.ts';
import type { OpenRuns } from '../../core/ports/run-lists.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import type { EndedRun } from '../../engine/engine-events.ts';
import { madeAt } from '../../engine/ids.ts';
import { type EngineLoad, otherAgents } from '../../engine/runs/counts.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { RunStatus } from '../../schema/run.ts';

export interface RunMetricsOptions {
  readonly registry: Registry;
  /** Whether this process hosts an agent. All others share one label, so that a store cannot make the labels many. */
  readonly isHosted: (agent_name: string) => boolean;
}

/** States of `rivulet_runs`, by status. Final runs have none. */
const states: Record<RunStatus, string | undefined> = {
  created: 'queued',
  'in-progress': 'running',
  cancelling: 'running',
  awaiting: 'awaiting',
  completed: undefined,
  failed: undefined,
  cancelled: undefined,
};

const runSeconds = Array.from({ length: 16 }, (_, power) => 0.1 * 2 ** power);
// Those of vLLM and of OpenTelemetry's conventions for generative AI, so that dashboards can show both.
const firstPartSeconds = [
  0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160,
];
const partSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const awaitSeconds = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 259_200, 604_800];

/** The metrics of runs. A run is observed once, at its end. What the engine counts is copied for each scrape. */
export class RunMetrics {
  readonly #isHosted: (agent_name: string) => boolean;
  readonly #total: Counter<'agent' | 'outcome' | 'error_code'>;
  /** Agents that have all their series: a counter that begins with zero shows its first increase. */
  readonly #known = new Set<string>();
  readonly #duration: Histogram<'agent' | 'outcome'>;
  readonly #firstPart: Histogram<'agent'>;
  readonly #perPart: Histogram<'agent'>;
  readonly #queue: Histogram<'agent'>;
  readonly #awaits: Histogram<'agent'>;
  readonly #tokens: Counter<'agent'>;
  readonly #diverged: Counter<'agent'>;
  readonly #parts: Counter<'agent'>;
  readonly #events: Counter<'agent'>;
  readonly #reentries: Counter<'agent'>;
  readonly #refused: Counter<'agent'>;
  readonly #open: Gauge<'state'>;
  readonly #oldest: Gauge<'state'>;
  readonly #here: Gauge<'state'>;

  constructor({ registry, isHosted }: RunMetricsOptions) {
    this.#isHosted = isHosted;
    const registers = [registry];
    const counter = (name: string, help: string): Counter<'agent'> =>
      new Counter({ name: `rivulet_${name}`, help, labelNames: ['agent'], registers });
    const histogram = (name: string, help: string, buckets: number[]): Histogram<'agent'> =>
      new Histogram({ name: `rivulet_${name}`, help, labelNames: ['agent'], buckets, registers });
    const gauge = (name: string, help: string): Gauge<'state'> =>
      new Gauge({ name: `rivulet_${name}`, help, labelNames: ['state'], registers });
    this.#total = new Counter({
      name: 'rivulet_runs_total',
      help: 'Runs that this node has ended.',
      labelNames: ['agent', 'outcome', 'error_code'],
      registers,
    });
    this.#duration = new Histogram({
      name: 'rivulet_run_duration_seconds',
      help: 'Time that a run was at work; its awaits do not count.',
      labelNames: ['agent', 'outcome'],
      buckets: runSeconds,
      registers,
    });
    this.#firstPart = histogram(
      'time_to_first_part_seconds',
      'Time from the creation of a run to its first part.',
      firstPartSeconds,
    );
    this.#perPart = histogram('time_per_part_seconds', 'Mean time between two parts of a run.', partSeconds);
    this.#queue = histogram('queue_seconds', 'Time from the creation of a run to its start.', firstPartSeconds);
    this.#awaits = histogram('await_seconds', 'Time from a question of a run to its reply.', awaitSeconds);
    this.#tokens = counter('tokens_total', 'Tokens of ended runs: as reported by the agent, otherwise the parts.');
    this.#diverged = counter(
      'replays_diverged_total',
      'Replays whose agent did not repeat the recording, so that the run is parked.',
    );
    this.#parts = counter('parts_total', 'Parts of messages that runs have emitted here.');
    this.#events = counter('events_total', 'Events that this node has written.');
    this.#reentries = counter('reentries_total', 'Executions that continue a run of an earlier process.');
    this.#refused = counter('epoch_refused_total', 'Executions that stopped because another node has the run.');
    this.#open = gauge('runs', 'Runs of the store that are not final, of all nodes.');
    this.#oldest = gauge('runs_oldest_seconds', 'Age of the oldest run of the store in a state, since its creation.');
    this.#here = gauge('node_runs', 'Runs in the memory of this node.');
  }

  onRunEnded({ row, error, work }: EndedRun): void {
    const agent = this.#labelOf(row.agent_name);
    const { outcome, error_code } = endingOf(row.status, error);
    this.#total.inc({ agent, outcome, error_code });
    if (work === undefined) return;
    // Sums of fractions may end a little below zero.
    this.#tokens.inc({ agent }, Math.max(0, work.tokens));
    this.#duration.observe({ agent, outcome }, work.seconds);
    if (work.queued !== undefined) this.#queue.observe({ agent }, work.queued);
    if (work.firstPart !== undefined) this.#firstPart.observe({ agent }, work.firstPart);
    if (work.perPart !== undefined) this.#perPart.observe({ agent }, work.perPart);
  }

  onRunParked({ agent_name }: RunRow): void {
    this.#diverged.inc({ agent: this.#labelOf(agent_name) });
  }

  onReply(agent_name: string, seconds: number): void {
    this.#awaits.observe({ agent: this.#labelOf(agent_name) }, seconds);
  }

  /** Copies what the engine has counted. `open` is undefined where the store did not answer. */
  fill({ agents, working, awaiting }: EngineLoad, open: readonly OpenRuns[] | undefined): void {
    for (const counter of [this.#parts, this.#events, this.#reentries, this.#refused]) counter.reset();
    for (const [agent, { parts, events, reentries, fenced }] of agents) {
      this.#parts.inc({ agent }, parts);
      this.#events.inc({ agent }, events);
      this.#reentries.inc({ agent }, reentries);
      this.#refused.inc({ agent }, fenced);
    }
    this.#fillStates({ working, awaiting }, open);
  }

  #fillStates({ working, awaiting }: Pick<EngineLoad, 'working' | 'awaiting'>, open: readonly OpenRuns[] | undefined) {
    this.#here.set({ state: 'running' }, working);
    this.#here.set({ state: 'awaiting' }, awaiting);
    this.#open.reset();
    this.#oldest.reset();
    if (open === undefined) return;
    const now = Date.now();
    const oldest = new Map(['queued', 'running', 'awaiting'].map((state) => [state, now]));
    for (const state of oldest.keys()) this.#open.set({ state }, 0);
    for (const { status, count, oldest: run_id } of open) {
      const state = states[status];
      if (state === undefined) continue;
      this.#open.inc({ state }, count);
      oldest.set(state, Math.min(oldest.get(state) ?? now, madeAt(run_id)));
    }
    for (const [state, since] of oldest) this.#oldest.set({ state }, (now - since) / 1000);
  }

  /** The label of an agent. An agent that this process does not host has a common one. */
  #labelOf(agent_name: string): string {
    if (this.#known.has(agent_name)) return agent_name;
    if (agent_name !== otherAgents && !this.#isHosted(agent_name)) return this.#labelOf(otherAgents);
    const labels = { agent: agent_name };
    for (const counter of [this.#tokens, this.#diverged]) counter.inc(labels, 0);
    for (const one of [this.#firstPart, this.#perPart, this.#queue, this.#awaits]) one.zero(labels);
    this.#known.add(agent_name);
    return agent_name;
  }
}

const timedOut = new Set(['await_timeout', 'run_timeout', 'idle_timeout']);
const interrupted = new Set(['run_interrupted', 'recovery_exhausted', 'store_failed']);

/**
 * How a run ended, where time-outs and failures of the server are told apart from other failures. The code is a row of the
 * table of errors, `_other` for an error of an agent, and empty without an error.
 */
function endingOf(status: RunStatus, error: ErrorBody | undefined): { outcome: string; error_code: string } {
  const reason = error?.data?.reason;
  const isOwn = typeof reason === 'string' && Object.hasOwn(errorTable, reason);
  const error_code = error === undefined ? '' : isOwn ? reason : '_other';
  if (status === 'completed' || status === 'cancelled') return { outcome: status, error_code };
  const outcome = timedOut.has(error_code) ? 'timed_out' : interrupted.has(error_code) ? 'interrupted' : 'failed';
  return { outcome, error_code };
}
