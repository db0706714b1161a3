#!/usr/bin/env node
import { Command, CommanderError, Option } from 'commander';
import { ClientError } from '../client/client-error.ts';
import { transitions } from '../core/run-state.ts';
import { version } from '../version.ts';
import { exit, exitCodesHelp } from './exit-codes.ts';
import {
  connecting,
  count,
  eventId,
  following,
  httpUrl,
  limit,
  list,
  milliseconds,
  networks,
  paths,
  port,
} from './options.ts';
import { terminal } from './terminal.ts';
import { UsageError } from './usage-error.ts';

/** Makes a command's action of what loads it: a command that is not used is not loaded, nor what it needs. */
const action =
  <Args extends unknown[]>(load: () => Promise<(...args: Args) => Promise<number>>) =>
  async (...args: Args): Promise<void> => {
    const work = await load();
    process.exitCode = await work(...args);
  };

/** The command line: an option wins over its environment variable. */
export function program(): Command {
  const command = new Command('rivulet')
    .description('A streaming-first agent server.')
    .version(version())
    .showHelpAfterError('(see --help)')
    .addHelpText('after', exitCodesHelp)
    .exitOverride()
    // Its errors repeat what was typed.
    .configureOutput({
      writeOut: (text) => terminal.print(text.trimEnd()),
      writeErr: (text) => terminal.error(text.trimEnd()),
    });
  serving(command.command('serve').description('Serve the agents of one or more folders'));
  working(
    command.command('worker').description('Execute the runs that servers of the same store are asked for'),
  ).action(action(async () => (await import('./commands/serve.ts')).work));
  command
    .command('new <name>')
    .description('Write a first agent, agents/NAME.ts, and its test')
    .action(action(async () => (await import('./commands/new.ts')).newAgent));
  following(command.command('run <agent> [text]'))
    .description('Run an agent and stream its answer; - reads the text from stdin')
    .option('--file <path>', 'give it a file as well; repeatable', paths, [])
    .option('--session <id>', 'the conversation to carry on')
    .action(action(async () => (await import('./commands/run.ts')).run));
  following(command.command('watch <run-id>'))
    .description('Follow a run: what there is already, and then what comes')
    .option('--after <id>', 'begin after this event', eventId, 0)
    .action(action(async () => (await import('./commands/watch.ts')).watch));
  following(command.command('resume <run-id> <text>'))
    .description('Answer what a run asks, and follow how it goes on; - reads the answer from stdin')
    .action(action(async () => (await import('./commands/resume.ts')).resume));
  connecting(command.command('cancel <run-id>'))
    .description('End a run')
    .action(action(async () => (await import('./commands/cancel.ts')).cancel));
  connecting(command.command('agents'))
    .description('List the agents')
    .option('--json', 'print manifests as lines of JSON')
    .action(action(async () => (await import('./commands/agents.ts')).agents));
  connecting(command.command('runs'))
    .description('List runs, newest first')
    .option('--agent <name>', 'only of this agent')
    .addOption(new Option('--status <status>', 'only these').choices(Object.keys(transitions)))
    .option('--session <id>', 'only of this conversation')
    .option('--limit <n>', 'at most so many', count, 20)
    .option('--json', 'print runs as lines of JSON')
    .action(action(async () => (await import('./commands/runs.ts')).runs));
  return command;
}

/** Adds the options of the commands that execute runs. */
function working(command: Command): Command {
  return command
    .argument('[dirs...]', 'folders of agents', ['agents'])
    .addOption(
      new Option('--store <url>', 'memory:, sqlite:PATH, redis://HOST or postgres://HOST/DATABASE')
        .env('RIVULET_STORE')
        .default('sqlite:./data/rivulet.db'),
    )
    .addOption(new Option('--public-url <url>', 'base of the URLs in sessions').env('PUBLIC_URL').argParser(httpUrl))
    .addOption(
      new Option('--allow-network <cidrs>', 'private networks whose session resources may be read, comma-separated')
        .env('RIVULET_ALLOW_NETWORK')
        .default([])
        .argParser(networks),
    )
    .addOption(
      new Option('--limit <name=value>', 'what runs and requests may take; docs/durability.md names all of them')
        .env('RIVULET_LIMITS')
        .default({ runs: {}, server: {} }, 'as there')
        .argParser(limit),
    )
    .addOption(
      new Option('--log-level <level>', 'least severe line to log')
        .env('LOG_LEVEL')
        .choices(['fatal', 'error', 'warn', 'info', 'debug', 'silent'])
        .default('warn'),
    );
}

function serving(command: Command): void {
  working(command)
    .option('--watch', 'load agents again when their files change')
    .addOption(new Option('--host <host>', 'address to listen on').env('HOST').default('127.0.0.1'))
    .addOption(
      new Option('--allow-host <hosts>', 'further host names that requests may be sent to, comma-separated; * for all')
        .env('RIVULET_ALLOW_HOST')
        .default([])
        .argParser(list),
    )
    .addOption(
      new Option('--allow-origin <origins>', 'origins of web pages that may call, comma-separated; * for all')
        .env('RIVULET_ALLOW_ORIGIN')
        .default([])
        .argParser(list),
    )
    .addOption(new Option('--port <port>', 'port; 0 takes a free one').env('PORT').default(8000).argParser(port))
    .option('--no-worker', 'only serve; runs are executed by others that share the store')
    .addOption(
      new Option('--stalled-after <ms>', 'drop a stream whose reader takes nothing for so long; 0 for never')
        .env('RIVULET_STALLED_AFTER')
        .default(60_000)
        .argParser(milliseconds),
    )
    .addOption(new Option('--no-docs', 'do not serve /docs and /openapi.json'))
    .addOption(new Option('--no-playground', 'do not serve the playground at /'))
    .action(action(async () => (await import('./commands/serve.ts')).serve));
}

function failed(error: unknown): number {
  // What is wrong with an option has been said, and so has what --help asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exit.completed : exit.usage;
  terminal.error(`rivulet: ${error instanceof Error ? error.message : String(error)}`);
  if (error instanceof UsageError) return exit.usage;
  if (!(error instanceof ClientError)) return exit.failed;
  if (error.code === 'network' || error.code === 'silent') {
    terminal.error('Is the server up? `rivulet serve` starts one; --url or RIVULET_URL names another.');
  }
  return error.status >= 400 && error.status < 500 && error.code !== 'not_understood' ? exit.usage : exit.unreachable;
}

// A reader of the output that has seen enough, as `| head` has, is no error.
terminal.whenUnread(() => process.exit(exit.completed));

program()
  .parseAsync()
  .catch((error: unknown) => {
    process.exitCode = failed(error);
  });
