import { expect, it } from 'vitest';
import { awaitingServers, listAwaiting } from './awaiting-server.ts';

// awaiting.servers.ts does the same with more runs, and measures their memory.
it('keeps awaiting runs on disk, where a restarted server finds and resumes them', async () => {
  const start = awaitingServers();
  const first = await start();
  const ids = await first.make(20);
  await first.answerAll(ids.slice(0, 5));
  expect(await first.stop()).toBe(0);

  const second = await start();
  await second.answerAll(ids.slice(5, 10));
  expect(await listAwaiting(second)).toEqual(ids.slice(10).reverse());
  await expect(second.answer(ids[0] ?? '')).rejects.toThrow('only an awaiting run can be resumed');
});
