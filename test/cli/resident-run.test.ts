import { queryObjects } from 'node:v8';
import { expect, it, onTestFinished, vi } from 'vitest';
import { beginResidentRun } from '../../src/cli/resident-run.ts';
import { Execution } from '../../src/engine/execution/execution.ts';
import { Cursor } from '../../src/engine/log/cursor.ts';
import { RunLog } from '../../src/engine/log/run-log.ts';

// What V8 does with the code for them is measured by the bench, in its row of finished runs.
it('leaves one run in memory, with its log and a reader, which no collection removes', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  onTestFinished(() => warned.mockRestore());
  await beginResidentRun();
  // Each call collects garbage first.
  const count = (kept: new (...of: never[]) => object): number => queryObjects(kept, { format: 'count' });
  expect([Execution, RunLog, Cursor].map(count)).toEqual([1, 1, 1]);
});
