import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { AttackedServer } from './attacked-server.ts';
import type { AttackName, Tally } from './attacks.ts';
import { Others, type Times } from './others.ts';

export interface Round {
  readonly name: AttackName;
  readonly connections: number;
  /** Requests of the others, before and during the attack each. */
  readonly requests: number;
  /** Answers that the attack gets before the others are measured: on a busy machine it begins late. */
  readonly answers?: readonly string[];
  /** Megabytes that the server may have at its peak. */
  readonly memory?: number;
  /** Limits of the server. */
  readonly limits?: object;
  /** Measure the others after the attack as well, and take the slower of both as quiet: other load may have begun. */
  readonly quietAfter?: boolean;
  /** Keep the server and the attacker on cores of their own. */
  readonly pinned?: boolean;
}

export interface Report {
  readonly quiet: Times;
  readonly attacked: Times;
  readonly tally: Tally;
  /** Megabytes of the server, before and at the peak during the attack. */
  readonly memory: readonly [before: number, peak: number];
}

const attackerFile = resolve(import.meta.dirname, 'attacker.ts');
/** Requests that warm the server up. */
const warmUp = 1_000;

/** Measures what an attack does to the callers that do not take part in it. */
export async function attackRound({
  name,
  connections,
  requests,
  answers = [],
  limits = {},
  quietAfter = false,
  pinned = false,
}: Round): Promise<Report> {
  const server = await AttackedServer.start(limits, pinned ? ['taskset', '-c', '0'] : []);
  const others = new Others(server.url, server.others);
  let attacker: ChildProcess | undefined;
  try {
    await others.measure(warmUp);
    const quiet = await others.measure(requests);
    const before = server.proc.rss;
    server.proc.resetPeak();
    // The lowest priority: on a machine of two cores it shares one with the others.
    const nice = pinned ? ['taskset', '-c', '1', 'nice', '-n', '19'] : ['nice', '-n', '19'];
    const [program = '', ...args] = [...nice, process.execPath, '--import', 'tsx', attackerFile];
    attacker = spawn(program, [...args, name, server.url, server.attacker, String(connections)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: attacker.stdout ?? process.stdin });
    const ended = once(attacker, 'exit').then(() => {
      throw new Error(`the attacker of ${name} has ended`);
    });
    ended.catch(() => undefined);
    const line = async (): Promise<string> => String((await Promise.race([once(lines, 'line'), ended]))[0]);
    const tallyOf = async ({ stdin }: ChildProcess): Promise<Tally> => {
      stdin?.write('\n');
      return JSON.parse(await line());
    };
    await line();
    while (!isAnswered(await tallyOf(attacker), answers)) await setTimeout(50);
    const attacked = await others.measure(requests);
    const tally = await tallyOf(attacker);
    const memory = [before, server.proc.peak] as const;
    attacker.kill('SIGKILL');
    const after = quietAfter ? await others.measure(requests) : quiet;
    return { quiet: after.median > quiet.median ? after : quiet, attacked, tally, memory };
  } finally {
    attacker?.kill('SIGKILL');
    others.close();
    await server.stop();
  }
}

const isAnswered = (tally: Tally, answers: readonly string[]): boolean =>
  answers.every((status) => status in tally.answers);

const ms = (value: number): string => `${value.toFixed(1)} ms`;

export function describeReport({ name, connections }: Round, { quiet, attacked, tally, memory }: Report): string {
  const [before, peak] = memory;
  const answers = Object.entries(tally.answers).map(([status, count]) => `${count} × ${status}`);
  return (
    `${name}, ${connections} connections: the others' p99 was ${ms(quiet.p99)} (median ${ms(quiet.median)}), ` +
    `and ${ms(attacked.p99)} (${ms(attacked.median)}) during the attack; ${attacked.failed} of their requests failed. ` +
    `The attacker has ${tally.open} open, ${tally.closed} were closed, answers: ${answers.join(', ') || 'none'}. ` +
    `Memory ${before.toFixed(0)} MB, at its peak ${peak.toFixed(0)} MB.`
  );
}
