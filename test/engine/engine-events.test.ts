import { expect, it, onTestFinished } from 'vitest';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { echo } from '../support/agents.ts';
import { engineOf } from '../support/engine.ts';

it('tells the feed of a commit before a listener that throws', async () => {
  const engine = await engineOf([echo], new MemoryStore(), {}, { onFailure() {} });
  engine.on('commit', () => {
    throw new Error('a listener is broken');
  });
  const feed = await engine.watchRuns({}, { limit: 1 });
  onTestFinished(() => feed.close());
  const { run_id } = await engine.create({ agent_name: 'echo', input: [{ parts: [{ content: 'hi' }] }] });
  for await (const events of feed) {
    const run = events.find(({ type }) => type === 'run');
    if (run === undefined) continue;
    expect(JSON.parse(run.data)).toMatchObject({ run: { run_id } });
    return;
  }
});
