import { type Client, createClient } from '../client/client.ts';
import { terminal } from './terminal.ts';

export interface Connection {
  readonly url: string;
  readonly header: [string, string][];
}

/** Milliseconds after which it is told that an answer has not begun. */
const connectTimeout = 5_000;

/**
 * The server that the options name. Breaks of the streams that are followed are told, and so is an answer that does not
 * begin. A user and a password in the URL are sent as HTTP Basic authentication; fetch takes none in a URL.
 */
export function connect({ url, header }: Connection, retries = 0): Client {
  const server = new URL(url);
  const { username, password } = server;
  server.username = '';
  server.password = '';
  const headers = new Headers(header);
  if ((username !== '' || password !== '') && !headers.has('Authorization')) {
    const words = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    headers.set('Authorization', `Basic ${Buffer.from(words).toString('base64')}`);
  }
  return createClient({
    url: server.href,
    headers,
    fetch: async (...request) => {
      const late = setTimeout(
        () => terminal.note(`No answer from ${server.host} yet; still waiting.`, 'yellow'),
        connectTimeout,
      );
      try {
        return await fetch(...request);
      } finally {
        clearTimeout(late);
      }
    },
    reconnect: {
      retries,
      maxDelay: 10_000,
      onBreak: ({ error, delay, attempt }) =>
        terminal.note(
          `The line is down (${error.message}); trying again in ${(delay / 1000).toFixed(1)} s, ${attempt} of ${retries}.`,
          'yellow',
        ),
    },
  });
}
