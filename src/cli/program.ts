import { Command, CommanderError, Option } from 'commander';
import { ClientError } from '../client/client-error.ts';
import { messageOf } from '../core/json.ts';
import { transitions } from '../core/run-state.ts';
import { version } from '../http/version.ts';
import { examplesHelp } from './examples.ts';
import { exit, exitCodesHelp, UsageError } from './exit-codes.ts';
import { readEnvFile } from './settings/env-file.ts';
import { addConnectionOptions, addFollowOptions, count, eventId, list, paths } from './settings/options.ts';
import { addServing, addSettings, type Resolved, resolveSettings } from './settings/resolve-settings.ts';
import type { Settings } from './settings/settings.ts';
import { terminal } from './terminal/terminal.ts';

/** The action of a command. The command's module is imported only when the command is used. */
const action =
  <Args extends unknown[]>(load: () => Promise<(...args: Args) => Promise<number>>) =>
  async (...args: Args): Promise<void> => {
    const run = await load();
    process.exitCode = await run(...args);
  };

/** The action of a command with settings; without mistakes in these, the command gets them and where they came from. */
const withSettings =
  (load: () => Promise<(settings: Settings, resolved: Resolved) => Promise<number>>) =>
  async (folders: readonly string[], _: unknown, command: Command): Promise<void> => {
    const resolved = await resolveSettings(command, folders);
    const run = await load();
    process.exitCode = await run(resolved.settings, resolved);
  };

/** The command line, with examples in the help of each command. An option takes precedence over its environment variable. */
function program(): Command {
  const command = new Command('rivulet')
    .description('A streaming-first agent server.')
    .version(version())
    .showHelpAfterError('(see --help)')
    .addHelpText('after', `${examplesHelp('rivulet')}\n${exitCodesHelp}`)
    .exitOverride()
    // commander's errors repeat what was typed, so they go through the terminal's sanitizing.
    .configureOutput({
      writeOut: (text) => terminal.print(text.trimEnd()),
      writeErr: (text) => terminal.error(text.trimEnd()),
    });
  addServerCommands(command);
  command
    .command('new <name>')
    .description('Write a first agent, agents/NAME.ts, and its test')
    .action(action(async () => (await import('./commands/new.ts')).newAgent));
  keyCommand(command.command('keys').description('Make API keys; docs/authentication.md'));
  addFollowOptions(command.command('run <agent> [text]'))
    .addOption(asJson())
    .description('Run an agent and stream its output; - reads the text from stdin')
    .option('--file <path>', 'add a file to the input; repeatable', paths, [])
    .option('--session <id>', 'continue this session')
    .action(action(async () => (await import('./commands/follow.ts')).run));
  addFollowOptions(command.command('chat <agent>'))
    .description('Talk with an agent in one session; /help lists what can be typed')
    .option('--session <id>', 'continue this session')
    .action(action(async () => (await import('./commands/chat.ts')).chat));
  addFollowOptions(command.command('watch <run-id>'))
    .addOption(asJson())
    .description('Follow a run: its past events first, then new ones')
    .option('--after <id>', 'start after the event with this number', eventId, 0)
    .action(action(async () => (await import('./commands/follow.ts')).watch));
  addFollowOptions(command.command('resume <run-id> [text]'))
    .addOption(asJson())
    .description(
      'Reply to a run that awaits, and follow it; - reads the reply from stdin, no text asks on the terminal',
    )
    .action(action(async () => (await import('./commands/follow.ts')).resume));
  addConnectionOptions(command.command('cancel <run-id>'))
    .description('Cancel a run')
    .action(action(async () => (await import('./commands/calls.ts')).cancel));
  addConnectionOptions(command.command('retry <run-id>'))
    .description('Try a parked run again, with the agents that the server has now')
    .action(action(async () => (await import('./commands/calls.ts')).retry));
  addConnectionOptions(command.command('erase'))
    .description('Erase all runs, sessions and messages of an owner')
    .option('--owner <owner>', 'an owner such as key:alice, with a token that has the scope admin; default: the caller')
    .option('--yes', 'do not ask')
    .action(action(async () => (await import('./commands/calls.ts')).erase));
  addConnectionOptions(command.command('record <run-id>'))
    .description('Print the log of a run as a fixture for tests')
    .action(action(async () => (await import('./commands/calls.ts')).record));
  addConnectionOptions(command.command('agents [name]'))
    .description('List agents, or the addresses of one for the clients of each protocol')
    .option('--json', 'print manifests as lines of JSON')
    .action(action(async () => (await import('./commands/calls.ts')).agents));
  addConnectionOptions(command.command('runs'))
    .description('List runs, newest first')
    .option('--agent <name>', 'only runs of this agent')
    .addOption(new Option('--status <status>', 'only runs with this status').choices(Object.keys(transitions)))
    .option('--session <id>', 'only runs of this session')
    .option('--parked', 'only parked runs, whose agents did not repeat what the runs have recorded')
    .option('--limit <n>', 'maximum number of runs', count, 20)
    .option('--watch', 'then print each run whose status changes, until Ctrl-C')
    .option('--json', 'print runs as lines of JSON')
    .action(action(async () => (await import('./commands/runs.ts')).runs));
  for (const one of command.commands) {
    one.addHelpText('after', () => examplesHelp(one.name()));
    addUsage(one, `rivulet ${one.name()}`);
  }
  return command;
}

/** The commands for the machine of a server: they use its settings, and no URL. */
function addServerCommands(command: Command): void {
  addServing(command.command('serve'))
    .description('Serve the agents of one or more folders')
    .action(withSettings(async () => (await import('./commands/serve.ts')).serve));
  addServing(command.command('worker'), { worker: true })
    .description('Execute the runs of servers that share the store')
    .action(withSettings(async () => (await import('./commands/serve.ts')).work));
  addServing(command.command('config'))
    .description('Print the settings that serve would have, where each came from, and warnings')
    .option('--check', 'print only mistakes and warnings; exit code 2 where there are mistakes')
    .option('--schema', 'print the JSON Schema of the file')
    .action(action(async () => (await import('./commands/config.ts')).config));
  addServing(command.command('doctor'))
    .description('Check store, agents, address, files and Node before serve; exit code 1 at a problem')
    .action(withSettings(async () => (await import('./commands/doctor.ts')).doctor));
  addStore(command.command('backup <file>'))
    .description('Copy a store in SQLite to a new file, also while a server writes to it')
    .action(action(async () => (await import('./commands/backup.ts')).backup));
  addStore(command.command('restore <file>'))
    .description('Replace a store in SQLite by a backup; stop the server first')
    .action(action(async () => (await import('./commands/backup.ts')).restore));
}

const addStore = (command: Command): Command => addSettings(command, ({ path }) => path[0] === 'store');

function keyCommand(command: Command): void {
  command
    .command('new')
    .description('Make an API key, and print it once')
    .requiredOption('--principal <name>', 'the user of the key')
    .option('--scope <scopes>', 'what the key may do, comma-separated; default: everything with own runs', list, [])
    .option('--tenant <name>', 'principals of one tenant share their runs')
    .option('--agent <names>', 'only these agents, comma-separated; * stands for any characters', list, [])
    .option('--expires <time>', 'when the key ends, such as 2027-01-31')
    .option('--note <text>', 'a note for people')
    .option('--file <path>', 'add the record of the key to this file')
    .action(action(async () => (await import('./commands/keys.ts')).newKey));
}

/** How a command is called stands after the errors of its arguments. */
function addUsage(command: Command, path: string): void {
  const names = command.commands.map((one) => one.name());
  const usage = names.length > 0 ? names.join('|') : command.usage();
  command.showHelpAfterError(`Usage: ${path} ${usage}\n(see --help)`);
  for (const one of command.commands) addUsage(one, `${path} ${one.name()}`);
}

const asJson = (): Option => new Option('--json', 'print events as lines of JSON');

/** Runs a command; `args` are without the program. Sets the exit code of the process, and never rejects. */
export async function execute(args: readonly string[]): Promise<void> {
  await program()
    .hook('preSubcommand', (_, command) => {
      if (command.options.some(({ long }) => long === '--env-file')) readEnvFile(args);
    })
    .parseAsync(args, { from: 'user' })
    .catch((error: unknown) => {
      process.exitCode = failed(error);
    });
}

function failed(error: unknown): number {
  // commander has printed its error, or the help, already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exit.completed : exit.usage;
  terminal.error(`rivulet: ${messageOf(error)}`);
  if (error instanceof UsageError) return exit.usage;
  if (!(error instanceof ClientError)) return exit.failed;
  if (error.status === 401) terminal.error('RIVULET_TOKEN or --token has the key or token that is sent.');
  if (error.code === 'network' || error.code === 'silent') {
    terminal.error('Is the server running? `npx rivulet serve` starts one; --url or RIVULET_URL selects another.');
  }
  return error.status >= 400 && error.status < 500 && error.code !== 'not_understood' ? exit.usage : exit.unreachable;
}
