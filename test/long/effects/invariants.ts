import type { Faults } from '../soak/measurements.ts';
import type { EffectLedger, RunLine } from './effect-ledger.ts';
import { type Attempt, History, type Placed, Processes, type Reply, type Times } from './history.ts';
import { rules } from './orders.ts';

/** Milliseconds for a signal to reach the engine, after the process has noted it. */
const signalTime = 1_000;
/** Milliseconds in which a node that was stalled has to find out that it has lost a run. */
const wakeTime = 1_000;
/** Milliseconds that a commit takes at most, on a busy machine. */
const commitTime = 1_000;
/** Milliseconds that a step may take longer than it says. */
const delay = 500;

/** Returns what breaks an invariant. */
type Check = (history: History, processes: Processes) => readonly string[];

const checks: Readonly<Record<string, Check>> = {
  'I1: a repeated effect uses other values': ({ lines }) => {
    const used = new Map<string, Set<string>>();
    for (const [name, value] of lines.flatMap(({ values = {} }) => Object.entries(values)))
      used.set(name, (used.get(name) ?? new Set()).add(value));
    return [...used].filter(([, all]) => all.size > 1).map(([name, all]) => `${name} is ${[...all].join(' and ')}`);
  },

  'I2: a run that goes on was undone': (history, processes) =>
    history.lines
      .filter((line) => line.what === 'undo' && isInVain(history, processes, line))
      .map(({ step, node }) => `${step} on ${node}`),

  'I2: a step began after another node took the run over': (history, processes) =>
    history.attempts
      .filter((attempt) => !history.isCurrent(attempt.life, attempt.from) && !wasUnderWay(history, processes, attempt))
      .map(place),

  'I3: two lives of a run are inside the same step': (history, processes) =>
    history.repeats
      .filter(([attempt, next]) => next.from < attempt.to && history.isCurrent(next.life, next.from))
      .filter(([attempt, next]) => !processes.excuses(attempt, next.from))
      .map(places),

  'I4: a reply repeated a running step': (history, processes) =>
    history.repeats
      .filter(([attempt, next]) => !processes.excuses(attempt, next.from))
      // An older life that repeats a step is a node that woke from a stall: see I2.
      .filter(([, next]) => history.isCurrent(next.life, next.from))
      .filter(([{ node }, next]) => processes.when(node, 'term') >= next.from)
      .filter(([{ from, to }, next]) =>
        accepted(history.placed).some(({ sentAt: at }) => from <= at && at <= Math.min(to, next.from)),
      )
      .map(places),

  'I5: the agent did not use the accepted reply': ({ placed, lines }) => {
    const texts = accepted(placed).map(({ text }) => text);
    // A run that did not go on after the first one has got another one.
    if (placed.stuck.includes('reply')) return [];
    if (texts.length > 1) return [`${texts.join(' and ')} were accepted`];
    const used = lines.flatMap(({ values }) => values?.reply ?? []);
    return texts.flatMap((text) => used.filter((other) => other !== text).map((other) => `${other} for ${text}`));
  },

  'I5: a run did not go on after its accepted reply': ({ placed }) => placed.stuck.filter((what) => what === 'reply'),

  'I5: a run is not cancelled after its accepted cancel': ({ placed: { cancel, status } }) =>
    cancel?.outcome === 'accepted' && status !== 'cancelled' ? [status] : [],

  'I6: a step waits for a reply that it does not need': ({ placed }) =>
    placed.stuck.filter((what) => what === 'unasked').map(() => rules[placed.order.kind].unasked ?? ''),

  'I7: a step began after SIGTERM': ({ attempts }, processes) =>
    attempts.filter(({ node, from }) => from > processes.when(node, 'term') + signalTime).map(place),

  'I7: a running step was cut off by SIGTERM': (history, processes) =>
    history.attempts.filter((attempt) => isForGrace(history, processes, attempt) && !hasEnded(attempt)).map(place),

  'I7: a step that ended after SIGTERM was done again': (history, processes) =>
    history.repeats.filter(([attempt]) => isForGrace(history, processes, attempt) && hasEnded(attempt)).map(places),

  'a run did not end': ({ placed }) => placed.stuck.filter((what) => what === 'end').map(() => placed.status),

  'a run failed': ({ placed: { status, error = '' } }) => (status === 'failed' ? [error] : []),

  'a completed run lacks an effect': ({ placed: { status, order }, attempts }) => {
    const missing = rules[order.kind].steps.filter(
      (name) => !attempts.some((attempt) => attempt.step === name && hasEnded(attempt)),
    );
    return status === 'completed' ? missing : [];
  },
};

const place = ({ step, node }: Attempt): string => `${step} on ${node}`;
const places = ([attempt, next]: readonly [Attempt, Attempt]): string =>
  `${attempt.step} on ${attempt.node} and ${next.node}`;
const hasEnded = ({ to }: Attempt): boolean => to < Number.POSITIVE_INFINITY;
const accepted = ({ replies }: Placed): Reply[] => replies.filter(({ outcome }) => outcome === 'accepted');

/** An agent undoes a run that is cancelled, and tidies up when all is done. In all other cases the run goes on. */
function isInVain(history: History, processes: Processes, { life, node, at, step: name }: RunLine): boolean {
  const { attempts, placed } = history;
  const { steps } = rules[placed.order.kind];
  const isDone = steps.every((step) => attempts.some((attempt) => attempt.step === step && attempt.to <= at));
  // Plain code after the last step may run before the end of that step is durable. Its process may die or stall then.
  const mayLoseEnd =
    processes.when(node, 'kill') <= at + commitTime || processes.stalled(node, at, at + commitTime) !== undefined;
  if (name !== 'refund' && isDone && mayLoseEnd) return false;
  if (attempts.some((attempt) => attempt.from > at && !history.isBefore(attempt.life, life))) return true;
  if (placed.status === 'cancelled' || placed.status === 'failed') return false;
  return name === 'refund' || !isDone;
}

/** Whether a step was about to begin when its node was stalled, so that the engine has given the agent nothing since. */
function wasUnderWay({ lines }: History, processes: Processes, { life, node, from }: Attempt): boolean {
  const woken = processes.stalled(node, from - wakeTime, from);
  if (woken === undefined) return false;
  return !lines.some((line) => line.what === 'end' && line.life === life && line.at >= woken && line.at <= from);
}

/** Whether a step was running when its node got SIGTERM, and had the time to end. */
function isForGrace(history: History, processes: Processes, attempt: Attempt): boolean {
  const { life, node, step, from, to, begin } = attempt;
  const { lease, shutdownGrace } = processes.times;
  const { cancel, replies, order } = history.placed;
  const term = processes.when(node, 'term');
  if (term === Number.POSITIVE_INFINITY || from > term || to < term || !history.isCurrent(life, term)) return false;
  // Its agent may have left it.
  if (cancel !== undefined || (rules[order.kind].others?.includes(step) && replies.length > 0)) return false;
  const wasKilled = processes.when(node, 'kill') < Number.POSITIVE_INFINITY;
  const wasStalled = processes.stalled(node, from - lease, term + shutdownGrace) !== undefined;
  return !wasKilled && !wasStalled && from + (begin.ms ?? 0) + delay < term + shutdownGrace;
}

/** The second run of a session began while the agent of the first one still worked. */
function findOverlap(first: History, second: History, processes: Processes): readonly string[] {
  const [next] = second.attempts;
  const { cancel } = first.placed;
  if (next === undefined) return [];
  if (cancel !== undefined && next.from >= cancel.sentAt + processes.times.cancelGrace) return [];
  return first.attempts
    .filter(({ from, to }) => from < next.from && next.from < to)
    .filter((attempt) => !processes.excuses(attempt, next.from))
    .map((attempt) => `${place(attempt)}, and ${place(next)}`);
}

/** Checks what the agents did outside, and adds what breaks an invariant to the faults: once for each run. */
export function checkInvariants(
  ledger: Pick<EffectLedger, 'of' | 'ofNode'>,
  placed: readonly Placed[],
  { seed, ...times }: Times & { readonly seed: number },
  faults: Faults,
): void {
  const processes = new Processes(ledger, times);
  const histories = placed.map((run) => new History(run, ledger.of(run.run_id)));
  const add = (kind: string, broken: readonly string[], ...shown: History[]): void => {
    if (broken.length === 0) return;
    const texts = shown.flatMap((history) => [
      `run ${history.placed.run_id} (${history.placed.order.kind}):`,
      history.text(processes, shown[0]?.startedAt),
    ]);
    faults.add(kind, [`seed ${seed}: ${broken.join('; ')}`, ...texts].join('\n      '));
  };
  for (const history of histories) {
    for (const [kind, check] of Object.entries(checks)) add(kind, check(history, processes), history);
    const before = histories.find(
      (other) => other !== history && other.placed.session_id === history.placed.session_id,
    );
    if (before === undefined || histories.indexOf(before) > histories.indexOf(history)) continue;
    const overlap = findOverlap(before, history, processes);
    add('I5: a run began while the agent of the run before it worked', overlap, before, history);
  }
}
