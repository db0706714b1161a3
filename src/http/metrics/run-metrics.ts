import { errorTable } from '../../core/errors.ts';
import type { Engine } from '../../engine/engine.ts';
import type { EndedRun } from '../../engine/engine-events.ts';
import { madeAt } from '../../engine/ids.ts';
import { otherAgents } from '../../engine/runs/counts.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { RunStatus } from '../../schema/run.ts';
import type { EngineMetrics, Meters, Scraped } from './meters.ts';

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

/**
 * The metrics of runs. A run is observed once, at its end. All agents that this process does not host share one label, so
 * that a store cannot make the labels many.
 */
export function runMetrics(
  engine: Engine,
  { counter, histogram }: Meters,
  isHosted: (agent_name: string) => boolean,
): EngineMetrics {
  const counted = (name: string, help: string) => counter(name, help, ['agent']);
  const timed = (name: string, help: string, buckets: number[]) => histogram(name, help, buckets, ['agent']);
  const total = counter('runs_total', 'Runs that this node has ended.', ['agent', 'outcome', 'error_code']);
  const duration = histogram(
    'run_duration_seconds',
    'Time that a run was at work; its awaits do not count.',
    runSeconds,
    ['agent', 'outcome'],
  );
  const firstPart = timed(
    'time_to_first_part_seconds',
    'Time from the creation of a run to its first part.',
    firstPartSeconds,
  );
  const perPart = timed('time_per_part_seconds', 'Mean time between two parts of a run.', partSeconds);
  const queue = timed('queue_seconds', 'Time from the creation of a run to its start.', firstPartSeconds);
  const awaits = timed('await_seconds', 'Time from a question of a run to its reply.', awaitSeconds);
  const tokens = counted('tokens_total', 'Tokens of ended runs: as reported by the agent, otherwise the parts.');
  const diverged = counted(
    'replays_diverged_total',
    'Replays whose agent did not repeat the recording, so that the run is parked.',
  );
  /** Agents that have all their series: a counter that begins with zero shows its first increase. */
  const known = new Set<string>();
  const labelOf = (agent_name: string): string => {
    if (known.has(agent_name)) return agent_name;
    if (agent_name !== otherAgents && !isHosted(agent_name)) return labelOf(otherAgents);
    const labels = { agent: agent_name };
    for (const one of [tokens, diverged]) one.inc(labels, 0);
    for (const one of [firstPart, perPart, queue, awaits]) one.zero(labels);
    known.add(agent_name);
    return agent_name;
  };
  const onEnded = ({ row, error, work }: EndedRun): void => {
    const agent = labelOf(row.agent_name);
    const { outcome, error_code } = endingOf(row.status, error);
    total.inc({ agent, outcome, error_code });
    if (work === undefined) return;
    // Sums of fractions may end a little below zero.
    tokens.inc({ agent }, Math.max(0, work.tokens));
    duration.observe({ agent, outcome }, work.seconds);
    if (work.queued !== undefined) queue.observe({ agent }, work.queued);
    if (work.firstPart !== undefined) firstPart.observe({ agent }, work.firstPart);
    if (work.perPart !== undefined) perPart.observe({ agent }, work.perPart);
  };
  return {
    unobserve: [
      engine.on('runEnded', onEnded),
      engine.on('runParked', ({ agent_name }) => diverged.inc({ agent: labelOf(agent_name) })),
      engine.on('reply', (agent_name, seconds) => awaits.observe({ agent: labelOf(agent_name) }, seconds)),
    ],
    fill: countsOfAgents(counted),
  };
}

/** Copies what the engine has counted for each agent. */
function countsOfAgents(counted: (name: string, help: string) => ReturnType<Meters['counter']>) {
  const counters = {
    parts: counted('parts_total', 'Parts of messages that runs have emitted here.'),
    events: counted('events_total', 'Events that this node has written.'),
    reentries: counted('reentries_total', 'Executions that continue a run of an earlier process.'),
    fenced: counted('epoch_refused_total', 'Executions that stopped because another node has the run.'),
  };
  return ({ load: { agents } }: Scraped): void => {
    for (const counter of Object.values(counters)) counter.reset();
    for (const [agent, counts] of agents) {
      counters.parts.inc({ agent }, counts.parts);
      counters.events.inc({ agent }, counts.events);
      counters.reentries.inc({ agent }, counts.reentries);
      counters.fenced.inc({ agent }, counts.fenced);
    }
  };
}

/** The metrics of runs that are not final, by state. */
export function stateMetrics({ gauge }: Meters): EngineMetrics {
  const open = gauge('runs', 'Runs of the store that are not final, of all nodes.', ['state']);
  const oldest = gauge('runs_oldest_seconds', 'Age of the oldest run of the store in a state, since its creation.', [
    'state',
  ]);
  const here = gauge('node_runs', 'Runs in the memory of this node.', ['state']);
  return {
    unobserve: [],
    fill({ load: { working, awaiting }, open: found }) {
      here.set({ state: 'running' }, working);
      here.set({ state: 'awaiting' }, awaiting);
      open.reset();
      oldest.reset();
      if (found === undefined) return;
      const now = Date.now();
      const since = new Map(['queued', 'running', 'awaiting'].map((state) => [state, now]));
      for (const state of since.keys()) open.set({ state }, 0);
      for (const { status, count, oldest: run_id } of found) {
        const state = states[status];
        if (state === undefined) continue;
        open.inc({ state }, count);
        since.set(state, Math.min(since.get(state) ?? now, madeAt(run_id)));
      }
      for (const [state, time] of since) oldest.set({ state }, (now - time) / 1000);
    },
  };
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
