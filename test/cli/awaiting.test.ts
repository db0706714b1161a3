import { expect, it } from 'vitest';
import { AwaitingServer, awaitingFolder } from '../support/awaiting.ts';

// awaiting.servers.ts does the same with more runs, and looks at the memory that they take.
it('keeps awaiting runs on disk, where a restart finds them and any of them is answered', { timeout: 60_000 }, async ({
  onTestFinished,
}) => {
  const { folder, remove } = awaitingFolder();
  onTestFinished(remove);
  const start = async (): Promise<AwaitingServer> => {
    const server = await AwaitingServer.start(folder);
    onTestFinished(() => server.kill());
    return server;
  };
  const first = await start();
  const ids = await first.make(20);
  await first.answerAll(ids.slice(0, 5));
  expect(await first.stop()).toBe(0);

  const second = await start();
  await second.answerAll(ids.slice(5, 10));
  const listed: string[] = [];
  for await (const { ids } of second.awaiting(100)) listed.push(...ids);
  expect(listed).toEqual(ids.slice(10).reverse());
  await expect(second.answer(ids[0] ?? '')).rejects.toThrow('only an awaiting run can be resumed');
});
