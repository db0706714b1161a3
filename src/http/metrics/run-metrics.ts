import { Counter, Gauge, type Registry } from 'prom-client';
import type { OpenRuns, RunRow } from '../../core/store.ts';
import { otherAgents } from '../../engine/counts.ts';
import { madeAt } from '../../engine/ids.ts';
import type { EndedRun, EngineObserver } from '../../engine/observers.ts';
import type { EngineLoad } from '../../engine/runs/load.ts';
import type { RunStatus } from '../../schema/run.ts';
import { AgentRuns, type RunHistograms } from './agent-runs.ts';
import { PlainHistogram } from './plain-histogram.ts';

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

/** The metrics of runs. A run is observed once, at its end; all else is copied from plain numbers for a scrape. */
export class RunMetrics implements EngineObserver {
  readonly #isHosted: (agent_name: string) => boolean;
  readonly #total: Counter<'agent' | 'outcome' | 'error_code'>;
  readonly #byAgent = new Map<string, AgentRuns>();
  readonly #histograms: RunHistograms;
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
    const histogram = (name: string, help: string, buckets: number[], labels: string[] = []): PlainHistogram =>
      new PlainHistogram({ name: `rivulet_${name}`, help, labelNames: ['agent', ...labels], buckets, registers });
    const gauge = (name: string, help: string): Gauge<'state'> =>
      new Gauge({ name: `rivulet_${name}`, help, labelNames: ['state'], registers });
    this.#total = new Counter({
      name: 'rivulet_runs_total',
      help: 'Runs that this node has ended.',
      labelNames: ['agent', 'outcome', 'error_code'],
      registers,
    });
    this.#histograms = {
      duration: histogram('run_duration_seconds', 'Time that a run was at work; its awaits do not count.', runSeconds, [
        'outcome',
      ]),
      firstPart: histogram(
        'time_to_first_part_seconds',
        'Time from the creation of a run to its first part.',
        firstPartSeconds,
      ),
      perPart: histogram('time_per_part_seconds', 'Mean time between two parts of a run.', partSeconds),
      queue: histogram('queue_seconds', 'Time from the creation of a run to its start.', firstPartSeconds),
      awaits: histogram('await_seconds', 'Time from a question of a run to its reply.', awaitSeconds),
    };
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

  onRunEnded(run: EndedRun): void {
    this.#of(run.row.agent_name).onEnded(run);
  }

  onRunParked({ agent_name }: RunRow): void {
    this.#of(agent_name).diverged += 1;
  }

  onReply(agent_name: string, seconds: number): void {
    this.#of(agent_name).onReply(seconds);
  }

  /** Copies the plain numbers. `open` is undefined where the store did not answer. */
  fill({ agents, working, awaiting }: EngineLoad, open: readonly OpenRuns[] | undefined): void {
    for (const counter of [this.#parts, this.#events, this.#reentries, this.#refused]) counter.reset();
    for (const [agent, { parts, events, reentries, fenced }] of agents) {
      this.#parts.inc({ agent }, parts);
      this.#events.inc({ agent }, events);
      this.#reentries.inc({ agent }, reentries);
      this.#refused.inc({ agent }, fenced);
    }
    for (const counter of [this.#total, this.#tokens, this.#diverged]) counter.reset();
    for (const [agent, { endings, tokens, diverged }] of this.#byAgent) {
      for (const { outcome, error_code, count } of endings.values()) {
        this.#total.inc({ agent, outcome, error_code }, count);
      }
      this.#tokens.inc({ agent }, tokens);
      this.#diverged.inc({ agent }, diverged);
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

  #of(agent_name: string): AgentRuns {
    const known = this.#byAgent.get(agent_name);
    if (known !== undefined) return known;
    if (agent_name !== otherAgents && !this.#isHosted(agent_name)) return this.#of(otherAgents);
    const runs = new AgentRuns(agent_name, this.#histograms);
    this.#byAgent.set(agent_name, runs);
    return runs;
  }
}
