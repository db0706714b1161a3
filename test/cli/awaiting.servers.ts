import { expect, it } from 'vitest';
import { AwaitingServer, awaitingFolder, sampleOf } from '../support/awaiting.ts';

// test/long/awaiting.ts does the same with 100,000 runs, and looks at times and memory more closely.
it('keeps awaiting runs on disk, where a restart finds them, a client lists them and any of them is answered', async ({
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
  const warm = await first.make(100);
  const before = await first.memory();
  const ids = [...warm, ...(await first.make(500))];
  const { heapUsed } = await first.memory();
  // It grows by a quarter of this; what is left of a run whose agent is gone would be five kilobytes each.
  expect(heapUsed - before.heapUsed).toBeLessThan(1_000_000);
  const answered = sampleOf(ids, 10);
  await first.answerAll(answered);
  expect(await first.stop()).toBe(0);

  const second = await start();
  const left = ids.filter((run_id) => !answered.includes(run_id));
  answered.push(...sampleOf(left, 10));
  await second.answerAll(answered.slice(12));
  const listed: string[] = [];
  for await (const { ids } of second.awaiting(100)) listed.push(...ids);
  expect(listed).toEqual(ids.filter((run_id) => !answered.includes(run_id)).reverse());
  await expect(second.answer(answered[0] ?? '')).rejects.toThrow('only an awaiting run can be resumed');
});
