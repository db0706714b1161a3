import { type Client, createClient } from '../client/client.ts';
import type { Screen } from './screen.ts';

export interface Connection {
  readonly url: string;
  readonly header: [string, string][];
}

/** The server that the options name. Where streams of it are followed, a screen is told of each break. */
export function connect({ url, header }: Connection, retries = 0, screen?: Screen): Client {
  return createClient({
    url,
    headers: header,
    reconnect: {
      retries,
      maxDelay: 10_000,
      onBreak: ({ error, delay, attempt }) =>
        screen?.note(
          `The line is down (${error.message}); trying again in ${(delay / 1000).toFixed(1)} s, ${attempt} of ${retries}.`,
          'yellow',
        ),
    },
  });
}
