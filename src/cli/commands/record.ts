import type { Event } from '../../schema/event.ts';
import { type Connection, connect } from '../connect.ts';
import { exit } from '../exit-codes.ts';
import { sanitizedJson } from '../sanitize.ts';
import { terminal } from '../terminal.ts';

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
