import { expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { rivulet } from '../support/command.ts';
import { agentFile, createRun, getJson, projectFolder, startRivulet } from './server-project.ts';

const backups = 3;
const clients = 8;

it('rivulet backup misses no run that was completed before, while clients make runs, and restore brings them back', {
  timeout: 240_000,
}, async () => {
  const folder = projectFolder({ 'agents/a.js': agentFile('a') });
  const server = startRivulet(folder, ['serve', '--port', '0']);
  const url = await server.url();
  const completed: Run[] = [];
  let [longest, stopping] = [0, false];
  const load = Array.from({ length: clients }, async () => {
    while (!stopping) {
      const begun = performance.now();
      completed.push(await createRun(url, 'a'));
      longest = Math.max(longest, performance.now() - begun);
    }
  });
  // Enough runs that a backup takes as long as several of them.
  await expect.poll(() => completed.length).toBeGreaterThan(200);
  const [usual, before] = [longest, [] as Run[][]];
  for (let n = 0; n < backups; n += 1) {
    before.push([...completed]);
    const { code, err } = await rivulet(['backup', `backup-${n}.db`], { cwd: folder });
    expect([code, err]).toEqual([0, '']);
  }
  stopping = true;
  await Promise.all(load);
  console.log(`longest request: ${Math.round(usual)} ms without, ${Math.round(longest)} ms with backups`);
  const refused = await rivulet(['restore', 'backup-0.db'], { cwd: folder });
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('is in use by another process')]);
  expect(await server.stop()).toBe(0);

  for (const [n, runs] of before.entries()) {
    const restored = await rivulet(['restore', `backup-${n}.db`], { cwd: folder });
    expect(restored.out).toMatch(/was restored from backup-\d\.db: .* checked\nThe replaced store is .*\.replaced-/);
    const again = startRivulet(folder, ['serve', '--port', '0']);
    const at = await again.url();
    const found = await Promise.all(runs.map(({ run_id }) => getJson(`${at}/runs/${run_id}`)));
    for (const [index, { status, session_id, output }] of runs.entries()) {
      expect(found[index]).toMatchObject({ status, session_id, output });
    }
    expect(await again.stop()).toBe(0);
  }
});
