import type { Run } from 'rivulet';
import { expect, it, onTestFinished, vi } from 'vitest';
import chat from '../../agents/chat.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { ask, finished, framesUntil, serveApi, textOf } from '../support/serve.ts';
import { startLlm } from './llm.ts';

it('chat continues an answer after its process was killed', async () => {
  const llm = await startLlm(({ body }) =>
    body.messages.length === 1
      ? (async function* () {
          yield* ['Rivers ', 'flow '];
          await new Promise(() => {});
        })()
      : ['to the ', 'sea.'],
  );
  onTestFinished(() => llm.close());
  vi.stubEnv('OPENAI_BASE_URL', llm.url);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const store = new RecordingStore();
  const first = await serveApi([chat], { store });
  const stream = await first.post('/runs', ask('chat', 'Where?', { mode: 'stream' }));
  const run_id = stream.headers.get('run-id') ?? '';
  await framesUntil(stream, ({ event }) => event.type === 'message.part' && event.part.content === 'flow ');
  const served = await serveApi([chat], { store: await store.after(store.commits.length) });
  const run: Run = await finished(served, run_id);
  expect(run).toMatchObject({ status: 'completed' });
  expect(textOf(run)).toBe('Rivers flow to the sea.');
  expect(llm.requests.at(-1)?.body.messages.slice(1)).toEqual([
    { role: 'assistant', content: 'Rivers flow ' },
    { role: 'user', content: expect.stringContaining('Go on exactly where you stopped') },
  ]);
});
