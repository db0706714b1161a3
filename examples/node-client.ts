import { fileURLToPath } from 'node:url';
import { EventSource } from 'eventsource';
import type { Event, Run } from 'rivulet';

/** Starts a run and comes back at once; the run goes on whether anybody reads it or not. */
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
 * Reads a run from its first event to its last and resolves to the Run as it ended. Where the connection
 * breaks, EventSource comes back with `Last-Event-ID`, so that `onEvent` misses nothing and sees
 * nothing twice. Rejects where coming back is of no use (no such run) or `onEvent` throws.
 */
export function follow(base: string, run_id: string, onEvent: (event: Event, id: number) => void): Promise<Run> {
  return new Promise<Run>((resolve, reject) => {
    const source = new EventSource(`${base}/runs/${run_id}/events`);
    // While it waits to reconnect, EventSource does not keep the process alive; this does.
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
        // Without this it would reconnect, as after any other end of a stream.
        close();
        resolve(event.run);
      } catch (error) {
        close();
        reject(error);
      }
    });
    source.addEventListener('error', ({ code, message }) => {
      // Any other state means that it is about to reconnect.
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
    // A named part is an artifact, whole; any other is the next token.
    const { name, content = '' } = event.part;
    process.stdout.write(name === undefined ? content : `[${name}] ${content}\n`);
  }
  if (event.type === 'message.completed') process.stdout.write('\n');
  if (event.type === 'run.awaiting') {
    // The stream stays open: whoever answers, from wherever, this reader sees how it goes on.
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
