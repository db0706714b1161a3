#!/usr/bin/env node
import closeWithGrace from 'close-with-grace';
import { Command, InvalidArgumentError, Option } from 'commander';
import { version } from '../version.ts';
import { type ServeOptions, serve } from './serve.ts';

const port = (text: string): number => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0 && value < 65_536) return value;
  throw new InvalidArgumentError('It has to be a whole number from 0 to 65535.');
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
  closeWithGrace({ delay: 10_000, logger: app.log, skip: ['uncaughtException', 'unhandledRejection'] }, () =>
    app.close(),
  );
}

program()
  .parseAsync()
  .catch((error: unknown) => {
    process.stderr.write(`rivulet: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
