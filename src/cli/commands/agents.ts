import type { AgentManifest } from '../../client/client.ts';
import { type Connection, connect } from '../connect.ts';
import { exit } from '../exit-codes.ts';
import { oneLine } from '../sanitize.ts';
import { withAgent } from '../suggest.ts';
import { table } from '../table.ts';
import { terminal } from '../terminal.ts';

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
