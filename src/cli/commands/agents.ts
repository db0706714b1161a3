import { type Connection, connect } from '../connect.ts';
import { exit } from '../exit-codes.ts';
import { table } from '../table.ts';
import { terminal } from '../terminal.ts';

export interface AgentsOptions extends Connection {
  readonly json?: boolean;
}

export async function agents(options: AgentsOptions): Promise<number> {
  const manifests = await connect(options).agents();
  const rows = manifests.map(({ name, status, description }) => [
    name,
    formatNumber(status?.success_rate, '%', 0),
    formatNumber(status?.avg_run_time_seconds, ' s', 1),
    description,
  ]);
  if (options.json) for (const manifest of manifests) terminal.json(manifest);
  else table(['NAME', 'SUCCESS', 'TIME', 'DESCRIPTION'], rows);
  return exit.completed;
}

const formatNumber = (value: number | undefined, unit: string, digits: number): string =>
  typeof value === 'number' ? `${value.toFixed(digits)}${unit}` : '-';
