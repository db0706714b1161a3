import { createRuntime, createServer, openBackend } from 'rivulet';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { echo } from '../support/agents.ts';
import { nodes } from '../support/nodes.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

describe('a backend', () => {
  it('is a store and the dispatcher that belongs to it, for a runtime that closes the dispatcher only', async () => {
    const backend = await openBackend('memory:');
    const [store, dispatcher] = [vi.spyOn(backend.store, 'close'), vi.spyOn(backend.dispatcher, 'close')];
    const runtime = await createRuntime({ agents: [echo], ...backend });
    expect(await runtime.sync('echo', 'a')).toMatchObject({ status: 'completed' });
    await runtime.close();
    expect([dispatcher.mock.calls.length, store.mock.calls.length]).toEqual([1, 0]);
    await backend.store.close();
  });

  it.each(['mongo:', 'redis:localhost', 'postgres://127.0.0.1:1/a'])(
    'says why it cannot be opened: %s',
    async (url) => {
      await expect(openBackend(url)).rejects.toThrow(/^(there is no store|the store .* cannot be opened)/);
    },
  );
});

describe('a store that processes share', () => {
  it('is refused without its dispatcher, and the error says what to do', async () => {
    const { store } = nodes([]);
    const says =
      /^this store is shared .* its dispatcher is missing; give its URL .* \.\.\.\(await openBackend\(url\)\)/;
    await expect(createRuntime({ agents: [echo], store })).rejects.toThrow(says);
    await expect(createServer({ agents: [echo], store })).rejects.toThrow(says);
  });

  for (const [name, find] of [
    ['Redis', redisPlace],
    ['PostgreSQL', postgresPlace],
  ] as const) {
    it(`comes with its queue: ${name}`, async ({ skip }) => {
      const place = await find();
      if (place === undefined) return skip(`there is no ${name}`);
      onTestFinished(() => place.remove());
      await expect(openBackend(place.url, { limits: { lease: 50 } })).rejects.toThrow('the queue beside the store');
      const backend = await openBackend(place.url, { limits: { running: 2 } });
      onTestFinished(() => backend.store.close());
      expect(backend.dispatcher.shared).toBe(true);
      const runtime = await createRuntime({ agents: [echo], ...backend });
      expect(await runtime.sync('echo', 'a')).toMatchObject({ status: 'completed' });
      await runtime.close();
      await expect(createRuntime({ agents: [echo], store: backend.store })).rejects.toThrow('dispatcher is missing');
    });
  }
});
