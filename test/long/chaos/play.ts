import type { Run } from '../../../src/index.ts';
import { isDurable } from './agents.ts';
import { Client } from './clients.ts';
import { Ledger, Violation } from './ledger.ts';
import { Random } from './random.ts';
import {
  checkLog,
  checkMade,
  checkOutcome,
  checkSeen,
  checkSession,
  type Inputs,
  inspect,
  type Kept,
  kept,
  listed,
  settle,
} from './verify.ts';
import { passed, World } from './world.ts';

export interface Plan {
  readonly rounds: number;
  readonly seed: number;
  /** How many write and read at once. Default 24 and 8. */
  readonly writers?: number;
  readonly readers?: number;
  /** Milliseconds that everything may take to come to rest at the end. Default two minutes. */
  readonly requestTimeout?: number;
  /** Told how it goes, every few seconds. */
  readonly report?: (line: string) => void;
}

export interface Figures {
  readonly rounds: number;
  readonly kills: number;
  /** How often it was asked to stop instead, the last time included. */
  readonly stops: number;
  readonly requests: number;
  readonly acknowledged: number;
  readonly eventsSeen: number;
  readonly eventsKept: number;
  readonly reconnects: number;
  readonly resumes: number;
  readonly cancels: number;
  readonly audits: number;
  readonly sessions: number;
  /** How many runs of each kind ended in each status. */
  readonly runs: Record<string, number>;
  readonly seconds: number;
  /** Milliseconds from the start of a process to its being up. */
  readonly recovery: { readonly p50: number; readonly max: number };
}

/**
 * Kills a server again and again while clients use it, and checks that whatever they were told is true at the end.
 * @throws Violation
 */
export async function play({
  rounds,
  seed,
  writers = 24,
  readers = 8,
  requestTimeout = 120_000,
  report = () => {},
}: Plan): Promise<Figures> {
  const began = performance.now();
  const random = new Random(seed);
  const world = await World.make();
  const ledger = new Ledger();
  let going = true;
  const busy = (name: string, act: (client: Client) => Promise<void>): Promise<void> =>
    repeat(new Client(world, ledger, new Random(random.whole(0, 2 ** 31)), name), act, () => going);
  const clients = [
    ...names('w', writers).map((name) => busy(name, (client) => client.write())),
    ...names('r', readers).map((name) => busy(name, (client) => client.read())),
  ];
  const everybody = Promise.all(clients);
  try {
    await Promise.race([
      torment(world, random, rounds, (round) => report(progress(round, rounds, ledger, world, began))),
      everybody,
    ]);
    going = false;
    await world.start();
    report('the last start: everything comes to its end');
    await within(requestTimeout, 'clients that do not come to an end', everybody);
    const { runs, sessions, inputs } = await within(
      requestTimeout,
      'an end that does not come',
      conclude(world, ledger, report),
    );
    return figures(world, ledger, { rounds, runs, sessions, inputs, began });
  } catch (error) {
    world.keep();
    if (error instanceof Violation) throw new Violation(`${error.message}\nThe file is kept: ${world.file}`);
    throw error;
  } finally {
    going = false;
    everybody.catch(() => undefined); // the first of them to fail has said why
    await world.clear();
  }
}

/** Starts and kills the server; one time in eight before it is up, and now and then it is only asked to stop. */
async function torment(world: World, random: Random, rounds: number, report: (round: number) => void): Promise<void> {
  let told = performance.now();
  for (let round = 1; round <= rounds; round += 1) {
    if (random.chance(1 / 8)) await world.start(random.whole(20, 900));
    else {
      await world.start();
      await passed(random.whole(50, 600));
      await (random.chance(1 / 6) ? world.stop() : world.kill());
    }
    if (performance.now() - told < 5_000) continue;
    told = performance.now();
    report(round);
  }
}

/** Lets all runs end, reads all there is, stops the server, and judges. */
async function conclude(world: World, ledger: Ledger, report: (line: string) => void) {
  const open = (await listed(world)).filter(({ finished_at }) => finished_at === undefined);
  await eachOf(open, (run) => settle(world, run));
  const runs: Kept[] = [];
  const all = await listed(world);
  report(`${all.length} runs, ${open.length} of them brought to their end by hand; now all of them are read`);
  await eachOf(all, async (run) => void runs.push(await kept(world, run)));
  const sessions = new Map<string, Run[]>();
  for (const { run } of runs) sessions.set(run.session_id ?? '', [...(sessions.get(run.session_id ?? '') ?? []), run]);
  // The file says what runs were asked to do that nobody knows of; WAL lets it be read meanwhile.
  const orders = inspect(world.file);
  await eachOf([...sessions], ([id, its]) => checkSession(world, id, its, orders));
  await world.stop();
  const inputs = inspect(world.file);
  checkMade(inputs, ledger);
  for (const one of runs) judge(one, ledger, inputs);
  return { runs, sessions: sessions.size, inputs };
}

function judge(one: Kept, ledger: Ledger, inputs: Inputs): void {
  const { run_id } = one.run;
  const known = ledger.runs.get(run_id);
  const order = inputs.get(run_id);
  if (order === undefined) throw new Violation(`run ${run_id} is listed, and not in the file`);
  checkLog(one);
  checkOutcome(one, order, known?.cancel ?? 'none');
  if (known !== undefined) checkSeen(one, known);
}

async function repeat(client: Client, act: (client: Client) => Promise<void>, going: () => boolean): Promise<void> {
  while (going()) await act(client);
}

/** Sixteen at a time. */
async function eachOf<T>(list: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = [...list];
  const worker = async (): Promise<void> => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await work(one);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

async function within<T>(milliseconds: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Violation(`${what}, in ${milliseconds / 1000} seconds`)), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

function progress(round: number, rounds: number, ledger: Ledger, { kills }: World, began: number): string {
  const seconds = Math.round((performance.now() - began) / 1000);
  return `round ${round} of ${rounds}, ${kills} kills, ${ledger.size} runs, ${ledger.eventsSeen} events seen, ${ledger.reconnects} reconnects, ${seconds} s`;
}

function figures(
  { kills, stops, starts }: World,
  ledger: Ledger,
  {
    rounds,
    runs,
    sessions,
    inputs,
    began,
  }: { rounds: number; runs: Kept[]; sessions: number; inputs: Inputs; began: number },
): Figures {
  const counts: Record<string, number> = {};
  for (const { run } of runs) {
    const kind = inputs.get(run.run_id)?.kind ?? 'pinned';
    const name = `${kind} (${isDurable(kind) ? 'durable' : 'pinned'}) ${run.status}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  const sorted = [...starts].sort((a, b) => a - b).map(Math.round);
  const { eventsSeen, reconnects, requests, resumes, cancels, audits } = ledger;
  return {
    rounds,
    kills,
    stops,
    requests,
    acknowledged: ledger.size,
    eventsSeen,
    eventsKept: runs.reduce((sum, { events }) => sum + events.length, 0),
    reconnects,
    resumes,
    cancels,
    audits,
    sessions,
    runs: Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))),
    seconds: Math.round((performance.now() - began) / 1000),
    recovery: { p50: sorted[sorted.length >> 1] ?? 0, max: sorted.at(-1) ?? 0 },
  };
}

const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);
