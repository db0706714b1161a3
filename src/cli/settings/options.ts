import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Limits } from '../../engine/limits.ts';
import { defaultUrl } from '../addresses.ts';
import { UsageError } from '../exit-codes.ts';
import { terminal } from '../terminal/terminal.ts';

const wholeNumber = (min: number, end: number, description: string) => (text: string) => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= min && value < end) return value;
  throw new InvalidArgumentError(`It has to be ${description}.`);
};

export const count = wholeNumber(1, 2 ** 31, 'a whole number from 1');
export const eventId = wholeNumber(0, 2 ** 31, 'the number of an event, or 0');
const retries = wholeNumber(0, 1000, 'a whole number from 0 to 999');

/** The server's URL. An error does not repeat the value, because it may contain a password. */
function serverUrl(text: string): string {
  if (URL.canParse(text) && /^https?:/.test(text)) return text;
  throw new UsageError('--url (or RIVULET_URL) has to be an http(s) URL, such as http://127.0.0.1:8000');
}

export const list = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);

export const paths = (text: string, previous: readonly string[]): string[] => [...previous, text];

/** Names of limits before 0.1; accepted with a warning until 1.0. */
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

/** The name of a limit today; warns where a former one is given. */
export function currentLimitName(name: string): string {
  const current = Object.hasOwn(formerNames, name) ? formerNames[name] : undefined;
  if (current === undefined) return name;
  terminal.error(`rivulet: the limit ${name} is now called ${current}; version 1.0 removes the old name.`);
  return current;
}

/** Parses one --header, or several lines, as in the environment: values may contain commas. */
function header(text: string, previous: readonly [string, string][]): [string, string][] {
  const headers = [...previous];
  for (const line of text.split('\n').filter((item) => item.trim() !== '')) {
    const colon = line.indexOf(':');
    const pair: [string, string] = [line.slice(0, Math.max(colon, 0)).trim(), line.slice(colon + 1).trim()];
    try {
      new Headers([pair]);
    } catch {
      // The message leaves out the value, which may be a secret.
      throw new UsageError("--header (or RIVULET_HEADERS): It has to be 'Name: value'.");
    }
    headers.push(pair);
  }
  return headers;
}

/** Adds the options of the commands that call a server; see `connect`. */
export const addConnectionOptions = (command: Command): Command =>
  command
    .addOption(
      new Option('--url <url>', 'URL of the server').env('RIVULET_URL').default(defaultUrl).argParser(serverUrl),
    )
    .addOption(new Option('--token <token>', 'key or token of the server; better in the variable').env('RIVULET_TOKEN'))
    .addOption(
      new Option(
        '--header <header>',
        "'Name: value', sent with each request, for example to authenticate at a proxy; repeatable",
      )
        .env('RIVULET_HEADERS')
        .default([])
        .argParser(header),
    );

/** Adds the options of the commands that follow a run; see `RunFollower`. */
export const addFollowOptions = (command: Command): Command =>
  addConnectionOptions(command)
    .option('--out <dir>', 'save artifacts in this folder')
    .option('--retries <n>', 'consecutive attempts to reconnect after a lost connection', retries, 6);
