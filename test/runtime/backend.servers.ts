import { createRuntime, openBackend } from 'rivulet';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { echo } from '../support/agents.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

describe('a backend', () => {
  it('is a store that the runtime leaves open', async () => {
    const backend = await openBackend('memory:');
    const close = vi.spyOn(backend.store, 'close');
    const runtime = await createRuntime({ agents: [echo], ...backend });
    expect(await runtime.sync('echo', 'a')).toMatchObject({ status: 'completed' });
    await runtime.close();
    expect(close).not.toHaveBeenCalled();
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
  for (const [name, find] of [
    ['Redis', redisPlace],
    ['PostgreSQL', postgresPlace],
  ] as const) {
    it(`executes runs of every runtime that is given it: ${name}`, async ({ skip }) => {
      const place = await find();
      if (place === undefined) return skip(`there is no ${name}`);
      onTestFinished(() => place.remove());
      const backend = await openBackend(place.url);
      onTestFinished(() => backend.store.close());
      const runtime = await createRuntime({ agents: [echo], ...backend });
      expect(await runtime.sync('echo', 'a')).toMatchObject({ status: 'completed' });
      await runtime.close();
    });
  }
});
