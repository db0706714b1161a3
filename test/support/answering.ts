import { createServer, type RequestListener } from 'node:http';
import { onTestFinished } from 'vitest';
import { listenOn } from './ports.ts';

/** The URL of a server that answers like this until the test is finished. */
export async function answering(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  onTestFinished(() => void server.close().closeAllConnections());
  return listenOn(server);
}
