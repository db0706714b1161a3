import { type Connection, connect } from './connect.ts';
import { exit } from './exit-codes.ts';

export async function cancel(run_id: string, options: Connection): Promise<number> {
  const run = await connect(options).cancel(run_id);
  process.stdout.write(`Run ${run.run_id} is ${run.status}.\n`);
  return exit.completed;
}
