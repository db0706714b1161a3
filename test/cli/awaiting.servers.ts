import { expect, it } from 'vitest';
import { sampleOf } from '../support/awaiting.ts';
import { awaitingServers, listAwaiting } from './awaiting-server.ts';

// test/long/awaiting.ts does the same with 100,000 runs, and measures times and memory in detail.
it('keeps awaiting runs on disk, where a restarted server lists and resumes them, and frees their memory', async () => {
  const start = awaitingServers();
  const first = await start();
  const warm = await first.make(100);
  const ids = [...warm];
  let grown = Number.POSITIVE_INFINITY;
  // It grows by 250,000 bytes, and by 1,200,000 on Node 24 and 26, which do not grow with more runs. A leak would be about
  // five kilobytes a run, with each of the parts.
  for (let part = 0; part < 4 && !(grown < 1_700_000); part += 1) {
    const before = await first.memory();
    ids.push(...(await first.make(500)));
    grown = (await first.memory()).heapUsed - before.heapUsed;
  }
  expect(grown).toBeLessThan(1_700_000);
  const answered = sampleOf(ids, 10);
  await first.answerAll(answered);
  expect(await first.stop()).toBe(0);

  const second = await start();
  const left = ids.filter((run_id) => !answered.includes(run_id));
  answered.push(...sampleOf(left, 10));
  await second.answerAll(answered.slice(12));
  expect(await listAwaiting(second)).toEqual(ids.filter((run_id) => !answered.includes(run_id)).reverse());
  await expect(second.answer(answered[0] ?? '')).rejects.toThrow('only an awaiting run can be resumed');
});
