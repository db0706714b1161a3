import { expect, it, onTestFinished, vi } from 'vitest';
import { openTraces } from '../../src/tracing/opentelemetry.ts';

const api = Symbol.for('opentelemetry.js.api.1');

it('the spans of an SDK are flushed where another copy of the API has registered it', async () => {
  const before = Reflect.get(globalThis, api);
  onTestFinished(() => void Reflect.set(globalThis, api, before));
  const sdk = { forceFlush: vi.fn(async () => {}) };
  // Its own class of what stands for the SDK.
  class ProxyTracerProvider {
    getTracer = () => ({});
    getDelegate = () => sdk;
  }
  Reflect.set(globalThis, api, { version: '1.10.0', trace: new ProxyTracerProvider() });
  const traces = await openTraces({ version: '0', trusted: false, onWarning: expect.unreachable });
  await traces?.flush();
  expect(sdk.forceFlush).toHaveBeenCalledOnce();
});

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
