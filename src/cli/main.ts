#!/usr/bin/env node
import closeWithGrace from 'close-with-grace';
import { Command, InvalidArgumentError, Option } from 'commander';
import { defaultLimits, type Limits } from '../engine/limits.ts';
import { version } from '../version.ts';
import { type ServeOptions, serve } from './serve.ts';

const port = (text: string): number => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0 && value < 65_536) return value;
  throw new InvalidArgumentError('It has to be a whole number from 0 to 65535.');
};

const milliseconds = (text: string): number => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0 && value < 2 ** 31) return value;
  throw new InvalidArgumentError('It has to be a whole number of milliseconds.');
};

const publicUrl = (text: string): string => {
  if (URL.canParse(text) && /^https?:/.test(text)) return text;
  throw new InvalidArgumentError('It has to be an http(s) URL, such as https://agents.example.com.');
};

const list = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);

// Once for each --limit, or several in one text, as the environment has them.
function limit(text: string, before: Partial<Record<keyof Limits, number>>): Partial<Record<keyof Limits, number>> {
  const limits = { ...before };
  for (const one of list(text)) {
    const [name = '', value = ''] = one.split('=');
    if (!isLimit(name))
      throw new InvalidArgumentError(
        `There is no limit "${name}"; there are ${Object.keys(defaultLimits).join(', ')}.`,
      );
    if (!/^\d+$/.test(value)) throw new InvalidArgumentError(`${name} has to be a whole number; got "${value}".`);
    limits[name] = Number(value);
  }
  return limits;
}

const isLimit = (name: string): name is keyof Limits => Object.hasOwn(defaultLimits, name);

/** The command line: every option is an environment variable too, and an option wins over it. */
export function program(): Command {
  const command = new Command('rivulet')
    .description('A streaming-first agent server.')
    .version(version())
    .showHelpAfterError('(see --help)');
  command
    .command('serve')
    .description('Serve the agents of one or more folders')
    .argument('[dirs...]', 'folders of agents', ['agents'])
    .addOption(new Option('--host <host>', 'address to listen on').env('HOST').default('127.0.0.1'))
    .addOption(new Option('--port <port>', 'port; 0 takes a free one').env('PORT').default(8000).argParser(port))
    .addOption(
      new Option('--store <url>', 'memory: or sqlite:PATH').env('RIVULET_STORE').default('sqlite:./data/rivulet.db'),
    )
    .addOption(new Option('--public-url <url>', 'base of the URLs in sessions').env('PUBLIC_URL').argParser(publicUrl))
    .addOption(
      new Option('--allow-network <cidrs>', 'private networks whose session resources may be read, comma-separated')
        .env('RIVULET_ALLOW_NETWORK')
        .default([])
        .argParser(list),
    )
    .addOption(
      new Option('--limit <name=value>', 'what runs may take and how long; docs/durability.md names all of them')
        .env('RIVULET_LIMITS')
        .default({})
        .argParser(limit),
    )
    .addOption(
      new Option('--stalled-after <ms>', 'drop a stream whose reader takes nothing for so long; 0 for never')
        .env('RIVULET_STALLED_AFTER')
        .default(60_000)
        .argParser(milliseconds),
    )
    .addOption(new Option('--no-docs', 'do not serve /docs and /openapi.json'))
    .addOption(
      new Option('--log-level <level>', 'least severe line to log')
        .env('LOG_LEVEL')
        .choices(['fatal', 'error', 'warn', 'info', 'debug', 'silent'])
        .default('warn'),
    )
    .action(run);
  return command;
}

async function run(folders: string[], options: ServeOptions): Promise<void> {
  const app = await serve(folders, options);
  // An agent may throw where no Observable catches it, in a timer of its own, say. Its run does not
  // end by that; all other runs would, if the process did.
  const stray = (error: unknown): void =>
    app.log.error({ err: error }, 'an agent threw outside of its run; the server goes on');
  process.on('uncaughtException', stray);
  process.on('unhandledRejection', stray);
  // Longer than the runs get, so that what follows them has its time as well; a second signal ends it at once.
  const delay = (options.limit.stopTime ?? defaultLimits.stopTime) + 8_000;
  closeWithGrace({ delay, logger: app.log, skip: ['uncaughtException', 'unhandledRejection'] }, () => app.close());
}

program()
  .parseAsync()
  .catch((error: unknown) => {
    process.stderr.write(`rivulet: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
