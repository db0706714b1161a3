import { onTestFinished } from 'vitest';
import { AwaitingServer, awaitingFolder } from '../support/awaiting.ts';

/** Returns a function that starts a server on one SQLite file, again and again. All of it is removed after the test. */
export function awaitingServers(): () => Promise<AwaitingServer> {
  const { folder, remove } = awaitingFolder();
  onTestFinished(remove);
  return async () => {
    const server = await AwaitingServer.start(folder);
    onTestFinished(() => server.kill());
    return server;
  };
}

/** The ids that the server lists as awaiting, newest first, 100 a page. */
export async function listAwaiting(server: AwaitingServer): Promise<string[]> {
  const listed: string[] = [];
  for await (const { ids } of server.awaiting(100)) listed.push(...ids);
  return listed;
}
