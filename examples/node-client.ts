import { fileURLToPath } from 'node:url';
import { EventSource } from 'eventsource';
import type { Event, Run } from 'rivulet';

/** Starts a run and returns at once; the run goes on without readers. */
export async function start(base: string, agent_name: string, text: string): Promise<Run> {
  const response = await fetch(`${base}/runs`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agent_name, mode: 'async', input: [{ role: 'user', parts: [{ content: text }] }] }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
}

/**
 * Reads all events of a run and resolves to the final Run. After a lost connection, EventSource reconnects with
 * `Last-Event-ID`, so that `onEvent` gets each event once. Rejects if the run does not exist or `onEvent` throws.
 */
export function follow(base: string, run_id: string, onEvent: (event: Event, id: number) => void): Promise<Run> {
  return new Promise<Run>((resolve, reject) => {
    const source = new EventSource(`${base}/runs/${run_id}/events`);
    // A timer keeps the process alive, because a reconnecting EventSource does not.
    const alive = setInterval(() => {}, 60_000);
    const close = (): void => {
      clearInterval(alive);
      source.close();
    };

    source.addEventListener('message', ({ data, lastEventId }) => {
      try {
        const event: Event = JSON.parse(data);
        onEvent(event, Number(lastEventId));
        if (!isLast(event)) return;
        // Otherwise EventSource would reconnect, as it does after each end of a stream.
        close();
        resolve(event.run);
      } catch (error) {
        close();
        reject(error);
      }
    });
    source.addEventListener('error', ({ code, message }) => {
      // In any other state, EventSource will reconnect.
      if (source.readyState !== source.CLOSED) return;
      close();
      reject(new Error(`the events of run ${run_id} cannot be read: ${message ?? code}`));
    });
  });
}

const isLast = (event: Event): event is Event & { run: Run } =>
  event.type === 'run.completed' || event.type === 'run.failed' || event.type === 'run.cancelled';

function print(event: Event): void {
  if (event.type === 'message.part') {
    // A part with a name is a whole artifact; any other is the next token.
    const { name, content = '' } = event.part;
    process.stdout.write(name === undefined ? content : `[${name}] ${content}\n`);
  }
  if (event.type === 'message.completed') process.stdout.write('\n');
  if (event.type === 'run.awaiting') {
    // The stream stays open and continues after the reply of any client.
    const question = event.run.await_request?.message.parts.map((part) => part.content ?? '').join('');
    process.stderr.write(`${question}\n(answer with POST /runs/${event.run.run_id})\n`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [base = 'http://127.0.0.1:8000', agent = 'echo', text = 'Hello'] = process.argv.slice(2);
  const { run_id } = await start(base, agent, text);
  const run = await follow(base, run_id, print);
  process.stderr.write(`${run.status}${run.error ? `: ${run.error.message}` : ''}\n`);
  process.exitCode = run.status === 'completed' ? 0 : 1;
}
