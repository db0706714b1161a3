import { type Command, InvalidArgumentError, Option } from 'commander';
import { Limits, parseLimits } from '../engine/limits.ts';
import { addressRule } from '../http/address-guard.ts';
import { ConnectionLimits, connectionLimits, HttpLimits, httpLimits } from '../http/limits.ts';
import { terminal } from './terminal.ts';
import { UsageError } from './usage-error.ts';

export const defaultUrl = 'http://127.0.0.1:8000';

const wholeNumber = (least: number, below: number, what: string) => (text: string) => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= least && value < below) return value;
  throw new InvalidArgumentError(`It has to be ${what}.`);
};

export const port = wholeNumber(0, 65_536, 'a whole number from 0 to 65535');
export const milliseconds = wholeNumber(0, 2 ** 31, 'a whole number of milliseconds');
export const count = wholeNumber(1, 2 ** 31, 'a whole number from 1');
export const eventId = wholeNumber(0, 2 ** 31, 'the id of an event, or 0');
const retries = wholeNumber(0, 1000, 'a whole number from 0 to 999');

export const httpUrl = (text: string): string => {
  if (URL.canParse(text) && /^https?:/.test(text)) return text;
  throw new InvalidArgumentError('It has to be an http(s) URL, such as https://agents.example.com.');
};

/** The server of the commands that talk to one. A value that is wrong is not repeated: it may have a password in it. */
function serverUrl(text: string): string {
  if (URL.canParse(text) && /^https?:/.test(text)) return text;
  throw new UsageError('--url (or RIVULET_URL) has to be an http(s) URL, such as http://127.0.0.1:8000');
}

export const list = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);

/** Addresses and ranges, comma-separated. */
export const networks = (text: string): string[] => checked(list(text), addressRule);

export const paths = (text: string, before: readonly string[]): string[] => [...before, text];

/** What --limit sets, of runs and of the server. */
export interface LimitOption {
  readonly runs: Partial<Limits>;
  readonly server: Partial<HttpLimits & ConnectionLimits>;
}

// `stalledAfter` has an option of its own.
const { stalledAfter: _, ...serverLimits } = { ...HttpLimits.properties, ...ConnectionLimits.properties };

/** Names of limits before 0.1; taken with a warning until 1.0. */
const formerNames: Readonly<Record<string, keyof Limits>> = {
  patience: 'requestTimeout',
  silence: 'idleTimeout',
  stopTime: 'shutdownGrace',
  keepKeys: 'idempotencyTtl',
  keepRuns: 'runTtl',
  keepSessions: 'sessionTtl',
  lookEvery: 'pollInterval',
  sweepEvery: 'sweepInterval',
  runTime: 'runTimeout',
  awaitTime: 'awaitTimeout',
  cancelDeadline: 'cancelGrace',
};

function presentName(name: string): string {
  const present = Object.hasOwn(formerNames, name) ? formerNames[name] : undefined;
  if (present === undefined) return name;
  terminal.error(`rivulet: the limit ${name} is called ${present} now; the old name goes with version 1.0.`);
  return present;
}

/** Once for each --limit, or several in one text, as the environment has them. */
export function limit(text: string, before: LimitOption): LimitOption {
  let { runs, server } = before;
  for (const one of list(text)) {
    const [given = '', value = ''] = one.split('=');
    const name = presentName(given);
    if (!/^\d+$/.test(value)) throw new InvalidArgumentError(`${name} has to be a whole number; got "${value}".`);
    const set = { [name]: Number(value) };
    if (name in Limits.properties) runs = { ...runs, ...checked(set, parseLimits) };
    else if (name in serverLimits) server = { ...server, ...checked(checked(set, httpLimits), connectionLimits) };
    else {
      const names = [...Object.keys(Limits.properties), ...Object.keys(serverLimits)].join(', ');
      throw new InvalidArgumentError(`There is no limit "${name}"; there are ${names}.`);
    }
  }
  return { runs, server };
}

/** The value, if the check lets it pass. */
function checked<T>(value: T, check: (value: T) => unknown): T {
  try {
    check(value);
    return value;
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
}

/** Once for each --header, or several lines, as the environment has them: values may have commas in them. */
function header(text: string, before: readonly [string, string][]): [string, string][] {
  const headers = [...before];
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    const colon = line.indexOf(':');
    const pair: [string, string] = [line.slice(0, Math.max(colon, 0)).trim(), line.slice(colon + 1).trim()];
    try {
      new Headers([pair]);
    } catch {
      // Without its value, which may be a secret.
      throw new UsageError("--header (or RIVULET_HEADERS): It has to be 'Name: value'.");
    }
    headers.push(pair);
  }
  return headers;
}

/** Adds the options of every command that talks to a server; see `connect`. */
export const connecting = (command: Command): Command =>
  command
    .addOption(new Option('--url <url>', 'the server').env('RIVULET_URL').default(defaultUrl).argParser(serverUrl))
    .addOption(
      new Option('--header <header>', "'Name: value' for each request, such as what a proxy asks for; repeatable")
        .env('RIVULET_HEADERS')
        .default([])
        .argParser(header),
    );

/** Adds the options of the commands that follow a run; see `Followed`. */
export const following = (command: Command): Command =>
  connecting(command)
    .option('--json', 'print events as lines of JSON')
    .option('--out <dir>', 'save artifacts there')
    .option('--retries <n>', 'attempts in a row to come back after a broken connection', retries, 6);
