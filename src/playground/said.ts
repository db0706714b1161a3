import type { Client, Message, MessagePart, Run } from '../client/client.ts';

/** Messages of a session that are read: a request each. */
const most = 60;

/** A session's newest messages, oldest first, as far as this server has them. */
export async function historyOf(client: Client, session: string): Promise<Message[]> {
  const { history } = await client.session(session);
  const ids = history.slice(-most).map((url) => new URL(url).pathname.split('/').at(-1) ?? '');
  return Promise.all(
    // By their ids: the URLs have the server's public name, which may be another than this page's.
    ids.map(async (id) => {
      const response = await fetch(`resources/${encodeURIComponent(id)}`);
      if (!response.ok) throw new Error(`the session's message ${id} was not found here`);
      return response.json();
    }),
  );
}

/**
 * What completed runs of a session were given, from the session's history: for each run, in the order in which they
 * completed, its input and then its output. Runs that cannot be told apart are left out.
 */
export function saidIn(history: readonly Message[], runs: readonly Run[]): Record<string, readonly MessagePart[]> {
  const said: Record<string, readonly MessagePart[]> = {};
  const completed = runs
    .filter(({ status }) => status === 'completed')
    .toSorted((a, b) => (a.finished_at ?? '').localeCompare(b.finished_at ?? ''));
  let rest = history;
  for (const { run_id, output } of completed) {
    const first = output[0]?.created_at;
    const at = rest.findIndex(({ role, created_at }) => role !== 'user' && created_at === first);
    // Of older runs the history that was read has nothing.
    if (at < 1) continue;
    said[run_id] = rest.slice(0, at).flatMap(({ parts }) => parts);
    rest = rest.slice(at + output.length);
  }
  return said;
}
