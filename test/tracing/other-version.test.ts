import { expect, it, onTestFinished } from 'vitest';
import { openTraces } from '../../src/tracing/opentelemetry.ts';

const api = Symbol.for('opentelemetry.js.api.1');

it('an SDK of another version of the API is reported, because a newer copy of the API does not see it', async () => {
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
