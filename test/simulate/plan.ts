import { drawFaults, type Fault } from './faults.ts';
import type { Random } from './random.ts';
import { agentOf, allActs, describe, drawScript, type Script } from './script.ts';

/** The actions of a client about its run. */
export interface ClientPlan {
  readonly name: string;
  readonly at: number;
  /** Clients of one number share a session; undefined for a session of its own. */
  readonly session: number | undefined;
  readonly script: Script;
  readonly mode: 'sync' | 'async' | 'stream';
  readonly ifBusy: 'parallel' | 'enqueue' | 'reject' | 'interrupt';
  readonly onDisconnect: 'continue' | 'cancel' | 'grace=1' | 'grace=4';
  /** With an Idempotency-Key: how often the request is sent at the same time; it is repeated until a response comes. */
  readonly key: { readonly twice: boolean } | undefined;
  /** Milliseconds after which a reader drops its connection, each time; 0 for never. */
  readonly dropsAfter: number;
  /** Other readers of the run, at other nodes, from its beginning. */
  readonly readers: number;
  /** The reaction to an await; `race` sends a cancel at the same time, which may name the question, `twice` two replies. */
  readonly answers: 'once' | 'twice' | 'again' | 'race' | 'never';
  /** Milliseconds by which the cancel of a `race` comes before the reply; an even number names the question. */
  readonly raceBy: number;
  /** Milliseconds until the client replies. */
  readonly thinks: number;
  /** Milliseconds after the creation; 0 for never. */
  readonly cancelAfter: number;
  /** What the client deletes, when the run is final or before. */
  readonly deletes: 'nothing' | 'run' | 'session' | 'early';
}

/** The input of a simulation. */
export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  /** One node with a store of its own, which the next node takes over. */
  readonly alone: boolean;
  readonly clients: readonly ClientPlan[];
  readonly faults: readonly Fault[];
}

/** Milliseconds in which clients connect and faults begin. */
const busyTime = 25_000;

export function drawPlan(random: Random, seed: number): Plan {
  // The start times of each session's clients: often several at the same moment.
  const sessions = Array.from({ length: random.between(1, 2) }, () => random.between(0, busyTime / 2));
  const clients = Array.from({ length: random.between(2, 9) }, (_, index) =>
    drawClient(random.fork(`client ${index}`), `client ${index}`, sessions),
  );
  const alone = random.chance(0.25);
  const nodes = alone ? 1 : random.of(1, 2, 3, 3);
  return { seed, nodes, alone, clients, faults: drawFaults(random.fork('faults'), busyTime) };
}

function drawClient(random: Random, name: string, sessions: readonly number[]): ClientPlan {
  const shares = random.chance(0.6);
  const session = random.below(sessions.length);
  const alone = random.chance(0.3) ? random.between(0, 500) : random.between(0, busyTime / 2);
  const together =
    (sessions[session] ?? 0) + random.of(random.between(0, 5), random.between(0, 300), random.between(0, 6_000));
  const script = drawScript(random.fork('script'));
  const isSilent = allActs(script.acts).some((act) => act.do === 'never' || ('ms' in act && act.ms > 5_000));
  return {
    name,
    at: shares ? together : alone,
    session: shares ? session : undefined,
    script,
    mode: random.of('sync', 'async', 'stream'),
    ifBusy: shares
      ? random.weighted([
          [6, 'enqueue'],
          [1, 'parallel'],
          [1, 'reject'],
          [1, 'interrupt'],
        ])
      : 'parallel',
    onDisconnect: random.weighted([
      [6, 'continue'],
      [1, 'cancel'],
      [1, 'grace=1'],
      [1, 'grace=4'],
    ]),
    key: random.chance(0.5) ? { twice: random.chance(0.4) } : undefined,
    dropsAfter: random.chance(0.4) ? random.between(20, 4_000) : 0,
    readers: random.below(3),
    answers: random.weighted([
      [5, 'once'],
      [2, 'twice'],
      [2, 'again'],
      [3, 'race'],
      [1, 'never'],
    ]),
    raceBy: random.between(-4, 8),
    thinks: random.of(random.between(0, 20), random.between(20, 1_000), random.between(1_000, 8_000)),
    cancelAfter: random.chance(isSilent ? 0.6 : 0.25)
      ? random.of(random.between(1, 100), random.between(100, 6_000))
      : 0,
    deletes: random.weighted([
      [6, 'nothing'],
      [1, 'run'],
      [1, 'session'],
      [1, 'early'],
    ]),
  };
}

/** The plans without one actor or fault each, for the shrinker. */
export function* smaller(plan: Plan): Generator<Plan> {
  const without = <T>(list: readonly T[], index: number): T[] => list.filter((_, at) => at !== index);
  for (const index of plan.clients.keys()) yield { ...plan, clients: without(plan.clients, index) };
  for (const index of plan.faults.keys()) yield { ...plan, faults: without(plan.faults, index) };
  for (const [index, client] of plan.clients.entries()) {
    for (const easier of easierThan(client)) yield { ...plan, clients: plan.clients.with(index, easier) };
  }
  if (plan.nodes > 1) yield { ...plan, nodes: plan.nodes - 1 };
}

function* easierThan(client: ClientPlan): Generator<ClientPlan> {
  const { script } = client;
  for (const index of script.acts.keys()) {
    if (script.acts.length > 1)
      yield { ...client, script: { ...script, acts: script.acts.filter((_, at) => at !== index) } };
  }
  for (const [index, act] of script.acts.entries()) {
    if (!('acts' in act)) continue;
    const flat = [...script.acts.slice(0, index), ...act.acts.flat(), ...script.acts.slice(index + 1)];
    yield { ...client, script: { ...script, acts: flat } };
  }
  if (client.readers > 0) yield { ...client, readers: 0 };
  if (client.dropsAfter > 0) yield { ...client, dropsAfter: 0 };
  if (client.cancelAfter > 0) yield { ...client, cancelAfter: 0 };
  if (client.key !== undefined) yield { ...client, key: undefined };
  if (client.deletes !== 'nothing') yield { ...client, deletes: 'nothing' };
  if (client.onDisconnect !== 'continue') yield { ...client, onDisconnect: 'continue' };
  if (client.answers !== 'once') yield { ...client, answers: 'once' };
  if (client.mode !== 'async') yield { ...client, mode: 'async' };
}

/** A plan as readable lines. */
export function planLines({ seed, nodes, alone, clients, faults }: Plan): string[] {
  return [
    `seed ${seed}: ${alone ? 'one node with a store of its own' : `${nodes} nodes`}, ${clients.length} clients, ${faults.length} faults`,
    ...clients.flatMap((client) => [
      `  ${seconds(client.at)}  ${client.name}: ${optionsOf(client)}`,
      `              ${agentOf(client.script)}: ${describe(client.script.acts)}`,
    ]),
    ...faults.map(({ at, kind, node, length }) => {
      const target = node < 0 ? 'all nodes' : `node ${node} of the running ones`;
      return `  ${seconds(at)}  fault: ${kind} for ${length} ms, ${target}`;
    }),
  ];
}

function optionsOf(client: ClientPlan): string {
  const { mode, ifBusy, session, onDisconnect, key, dropsAfter, readers, answers, thinks, cancelAfter, deletes } =
    client;
  const asks = allActs(client.script.acts).some(
    ({ do: kind }) => kind === 'ask' || kind === 'hold' || kind === 'race' || kind === 'talk',
  );
  return [
    `${mode}, ${ifBusy}`,
    session === undefined ? 'own session' : `session ${session}`,
    onDisconnect !== 'continue' && `on disconnect ${onDisconnect}`,
    key && `key${key.twice ? ' sent twice at once' : ''}`,
    dropsAfter > 0 && `drops its connection after ${dropsAfter} ms`,
    readers > 0 && `${readers} more readers`,
    asks && `answers ${answers} after ${thinks} ms`,
    cancelAfter > 0 && `cancels after ${cancelAfter} ms`,
    deletes !== 'nothing' && `deletes ${deletes}`,
  ]
    .filter((option) => option !== false && option !== undefined)
    .join('; ');
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(3).padStart(8)} s`;
