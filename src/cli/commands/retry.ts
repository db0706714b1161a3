import { type Connection, connect } from '../connect.ts';
import { exit } from '../exit-codes.ts';
import { terminal } from '../terminal.ts';

export async function retry(run_id: string, options: Connection): Promise<number> {
  const run = await connect(options).retry(run_id);
  terminal.print(`Run ${run.run_id} is tried again.`);
  return exit.completed;
}
