import { type Connection, connect } from './connect.ts';
import { exit } from './exit-codes.ts';
import { table } from './table.ts';

export interface AgentsOptions extends Connection {
  readonly json?: boolean;
}

export async function agents(options: AgentsOptions): Promise<number> {
  const all = await connect(options).agents();
  const rows = all.map(({ name, status, description }) => [
    name,
    figure(status?.success_rate, '%', 0),
    figure(status?.avg_run_time_seconds, ' s', 1),
    description,
  ]);
  process.stdout.write(
    options.json
      ? all.map((one) => `${JSON.stringify(one)}\n`).join('')
      : table(['NAME', 'SUCCESS', 'TIME', 'DESCRIPTION'], rows),
  );
  return exit.completed;
}

const figure = (value: number | undefined, unit: string, digits: number): string =>
  value === undefined ? '-' : `${value.toFixed(digits)}${unit}`;
