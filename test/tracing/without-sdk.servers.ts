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

it('without an OpenTelemetry SDK, nothing is traced, and the API is not loaded', async () => {
  const script = `
    const { createRuntime, defineAgent } = await import('./dist/index.js');
    const run = (_, { step, trace }) => step('one', async () => JSON.stringify(trace()));
    const runtime = await createRuntime({ agents: [defineAgent({ name: 'stepping', description: 'Takes a step.' }, run)] });
    const { output } = await runtime.sync('stepping', 'hi');
    await runtime.close();
    const { createRequire } = await import('node:module');
    const loaded = Object.keys(createRequire(import.meta.url).cache);
    console.log(output[0].parts[0].content, loaded.length > 0, loaded.filter((one) => one.includes('@opentelemetry')).length);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  expect(stdout).toBe('{} true 0\n');
});
