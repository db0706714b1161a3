import type { Client, Message, MessagePart, Run } from '../client/client.ts';

/** Messages of a session that are read, with one request each. */
const maxMessages = 60;

/** Reads a session's newest messages, oldest first. @throws Error if this server does not have one of them */
export async function readHistory(client: Client, session: string): Promise<Message[]> {
  const { history } = await client.session(session);
  const ids = history.slice(-maxMessages).map((url) => new URL(url).pathname.split('/').at(-1) ?? '');
  return Promise.all(
    // By id, because the URLs have the server's public name, which may differ from the page's.
    ids.map(async (id) => {
      const response = await fetch(`resources/${encodeURIComponent(id)}`);
      if (!response.ok) throw new Error(`the session's message ${id} was not found here`);
      return response.json();
    }),
  );
}

/**
 * The inputs of completed runs, by run id, found in the session's history. The history has each run's input and then its
 * output, in the order in which the runs completed. Runs that are not found are left out.
 */
export function inputsFrom(history: readonly Message[], runs: readonly Run[]): Record<string, readonly MessagePart[]> {
  const inputs: Record<string, readonly MessagePart[]> = {};
  const completed = runs
    .filter(({ status }) => status === 'completed')
    .toSorted((a, b) => (a.finished_at ?? '').localeCompare(b.finished_at ?? ''));
  let rest = history;
  for (const { run_id, output } of completed) {
    const first = output[0]?.created_at;
    const at = rest.findIndex(({ role, created_at }) => role !== 'user' && created_at === first);
    // An older run, which the part of the history that was read does not include.
    if (at < 1) continue;
    inputs[run_id] = rest.slice(0, at).flatMap(({ parts }) => parts);
    rest = rest.slice(at + output.length);
  }
  return inputs;
}
