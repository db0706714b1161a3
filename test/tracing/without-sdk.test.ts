import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openTraces } from '../../src/tracing/opentelemetry.ts';

const api = Symbol.for('opentelemetry.js.api.1');

describe('without an OpenTelemetry SDK', () => {
  it('nothing is traced, the API is not loaded, and traces cost less than 1 % of the CPU of a short run', async () => {
    const probe = resolve(import.meta.dirname, 'untraced-probe.ts');
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', probe]);
    const { said, loaded, run, traces } = JSON.parse(stdout);
    console.log(`a short run takes ${run.toFixed(1)} µs of CPU, ${traces.toFixed(3)} µs of it for traces`);
    expect([said, loaded]).toEqual(['step {}', false]);
    expect(traces).toBeLessThan(run / 100);
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
