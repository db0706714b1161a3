import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('without an OpenTelemetry SDK, traces cost less than 1 % of the CPU of a short run', async () => {
  const probe = resolve(import.meta.dirname, 'untraced-probe.ts');
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', probe]);
  const { run, traces } = JSON.parse(stdout);
  console.log(`a short run takes ${run.toFixed(1)} µs of CPU, ${traces.toFixed(3)} µs of it for traces`);
  expect(traces).toBeLessThan(run / 100);
});
