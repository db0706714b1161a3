import type { AgentManifest } from '../../client/client.ts';
import type { Event } from '../../schema/event.ts';
import { type Connection, connect, withAgent } from '../connect.ts';
import { exit, UsageError } from '../exit-codes.ts';
import { oneLine, sanitizedJson } from '../terminal/format.ts';
import { table, terminal } from '../terminal/terminal.ts';

export async function cancel(run_id: string, options: Connection): Promise<number> {
  const run = await connect(options).cancel(run_id);
  terminal.print(`Run ${run.run_id} is ${run.status}.`);
  return exit.completed;
}

export async function retry(run_id: string, options: Connection): Promise<number> {
  const run = await connect(options).retry(run_id);
  terminal.print(`Run ${run.run_id} is tried again.`);
  return exit.completed;
}

export interface EraseOptions extends Connection {
  readonly owner?: string;
  readonly yes?: boolean;
}

/** Erases all that an owner has, or the caller itself. What is erased cannot be restored, so it asks first. */
export async function erase({ owner, yes = false, ...options }: EraseOptions): Promise<number> {
  const whose = owner === undefined ? 'the caller of this token' : owner;
  if (!yes && !(await isConfirmed(whose))) {
    terminal.note('Nothing was erased.');
    return exit.failed;
  }
  const { runs, sessions } = await connect(options).erase(owner);
  terminal.print(`Erased ${runs} runs and ${sessions} sessions of ${whose}.`);
  return exit.completed;
}

async function isConfirmed(whose: string): Promise<boolean> {
  if (!terminal.interactive) throw new UsageError('erase asks before it erases; without a terminal, give --yes');
  return terminal.withPrompt(new AbortController().signal, async (readLine) => {
    const typed = await readLine(`Erase all runs, sessions and messages of ${whose}? Type yes: `);
    return typed?.trim() === 'yes';
  });
}

/**
 * Prints a run's log as a JSON array, one event a line: a fixture for `rivulet/testing`. A run at work is followed to its
 * end, and one that awaits up to its question.
 */
export async function record(run_id: string, connection: Connection): Promise<number> {
  const client = connect(connection);
  const { await_request } = await client.get(run_id);
  const events: Event[] = [];
  for await (const event of client.watch(run_id)) {
    events.push(event);
    // Earlier questions are in the log as well; each has its own id.
    const asked = 'run' in event ? event.run.await_request : undefined;
    if (asked !== undefined && asked.id === await_request?.id) break;
  }
  terminal.answer(`[\n${events.map((event) => sanitizedJson(event)).join(',\n')}\n]\n`);
  return exit.completed;
}

export interface AgentsOptions extends Connection {
  readonly json?: boolean;
}

export async function agents(name: string | undefined, options: AgentsOptions): Promise<number> {
  const client = connect(options);
  if (name === undefined) {
    const manifests = await client.agents();
    if (options.json) for (const manifest of manifests) terminal.json(manifest);
    else if (manifests.length > 0) printTable(manifests);
    else terminal.note('The server hosts no agent, or none that you may use.');
    return exit.completed;
  }
  const manifest = await withAgent(client, name, () => client.agent(name));
  if (options.json) terminal.json(manifest);
  else {
    printTable([manifest]);
    printAddresses(manifest);
  }
  return exit.completed;
}

function printTable(manifests: readonly AgentManifest[]): void {
  const rows = manifests.map(({ name, status, description }) => [
    name,
    formatNumber(status?.success_rate, '%', 0),
    formatNumber(status?.avg_run_time_seconds, ' s', 1),
    description,
  ]);
  table(['NAME', 'SUCCESS', 'TIME', 'DESCRIPTION'], rows);
}

/** Not as a table, which would cut URLs on a narrow terminal. An older server names none. */
function printAddresses({ addresses = [] }: AgentManifest): void {
  const rows = addresses.map(({ protocol, url }) => [oneLine(protocol), oneLine(url)] as const);
  const width = Math.max(0, ...rows.map(([protocol]) => protocol.length));
  if (rows.length > 0) terminal.print('');
  for (const [protocol, url] of rows) terminal.print(`${protocol.padEnd(width)}  ${url}`);
}

const formatNumber = (value: number | undefined, unit: string, digits: number): string =>
  typeof value === 'number' ? `${value.toFixed(digits)}${unit}` : '-';
