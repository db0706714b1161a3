import { type Client, createClient } from '../client/client.ts';
import { ClientError } from '../client/client-error.ts';
import { UsageError } from './exit-codes.ts';
import { suggestion } from './terminal/format.ts';
import { noteIfSlow, terminal } from './terminal/terminal.ts';

export interface Connection {
  readonly url: string;
  readonly token?: string | undefined;
  readonly header: [string, string][];
}

/**
 * A client of the server that the options name. Prints a note for each lost connection and for each slow response.
 * User and password in the URL are sent as HTTP Basic authentication, because fetch refuses them in a URL.
 */
export function connect({ url, token, header }: Connection, retries = 0): Client {
  const server = new URL(url);
  const { username, password } = server;
  server.username = '';
  server.password = '';
  const headers = new Headers(header);
  // Names the channel of a reply in the record of its run.
  if (!headers.has('Rivulet-Channel')) headers.set('Rivulet-Channel', 'cli');
  if ((username !== '' || password !== '') && !headers.has('Authorization')) {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    headers.set('Authorization', `Basic ${Buffer.from(credentials).toString('base64')}`);
  }
  return createClient({
    url: server.href,
    token,
    headers,
    fetch: (...request) =>
      noteIfSlow(fetch(...request), () =>
        terminal.note(`No response from ${server.host} yet; still waiting.`, 'yellow'),
      ),
    reconnect: {
      retries,
      firstRetries: retries,
      maxDelay: 10_000,
      onBreak: ({ error, delay, attempt }) =>
        terminal.note(
          `Connection lost (${error.message}); retrying in ${(delay / 1000).toFixed(1)} s, ${attempt} of ${retries}.`,
          'yellow',
        ),
    },
  });
}

/** Calls a server about an agent. @throws UsageError with a similar name, where there is no such agent */
export async function withAgent<T>(client: Client, agent: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ClientError) || error.status !== 404) throw error;
    const names = (await client.agents()).map(({ name }) => name);
    if (names.includes(agent)) throw error;
    throw new UsageError(`${error.message}${suggestion(agent, names)}`);
  }
}
