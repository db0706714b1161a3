import { type Client, createClient } from '../client/client.ts';
import { terminal } from './terminal.ts';

export interface Connection {
  readonly url: string;
  readonly token?: string | undefined;
  readonly header: [string, string][];
}

/** Milliseconds without response headers after which a note is printed. */
const slowResponse = 5_000;

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
    fetch: async (...request) => {
      const timer = setTimeout(
        () => terminal.note(`No response from ${server.host} yet; still waiting.`, 'yellow'),
        slowResponse,
      );
      try {
        return await fetch(...request);
      } finally {
        clearTimeout(timer);
      }
    },
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
