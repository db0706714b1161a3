import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openTraces } from '../../src/tracing/opentelemetry.ts';

const api = Symbol.for('opentelemetry.js.api.1');

describe('without an OpenTelemetry SDK', () => {
  // without-sdk.servers.ts measures what traces cost.
  it('nothing is traced, and the API is not loaded', async () => {
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
});

describe('an SDK of another version of the API', () => {
  it('is reported, because a newer copy of the API does not see it', async () => {
    const before = Reflect.get(globalThis, api);
    onTestFinished(() => void Reflect.set(globalThis, api, before));
    Reflect.set(globalThis, api, { version: '2.0.0', trace: {} });
    const warnings: string[] = [];
    const options = { version: '0', trusted: false, onWarning: (text: string) => void warnings.push(text) };
    expect(await openTraces(options)).toBeUndefined();
    expect(warnings).toEqual([
      'runs are not traced: rivulet loads another version of @opentelemetry/api than the SDK, which has 2.0.0; ' +
        'install one version, from 1.9.0, for both',
    ]);
  });
});
