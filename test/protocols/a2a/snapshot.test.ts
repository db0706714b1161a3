import { concat, from, ignoreElements } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import { agent } from '../../support/agents.ts';
import { listen } from '../../support/serve.ts';

const tokens = 40_000;
const talker = agent('talker', (_, { await: ask }) =>
  concat(from(Array<string>(tokens).fill('x')), ask('Go on?').pipe(ignoreElements())),
);

/** Turns of the event loop, until `work` has ended. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let [turns, ended] = [0, false];
  const count = (): void => {
    turns += 1;
    if (!ended) setImmediate(count);
  };
  setImmediate(count);
  await work();
  ended = true;
  return turns;
}

it('a long task is folded for its subscribers in many turns of the event loop', async () => {
  const served = await listen([talker]);
  onTestFinished(() => served.app.close());
  const version = { 'a2a-version': '1.0' };
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }] };
  const { task } = await (await served.post('/a2a/talker/message:send', { message }, version)).json();
  let first = '';
  const turns = await turnsDuring(async () => {
    const response = await served.get(`/a2a/talker/tasks/${task.id}:subscribe`, version);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    while (!first.includes('\n\n')) first += (await reader?.read())?.value ?? '';
    await reader?.cancel();
  });
  expect(JSON.parse(/^data: (.*)$/m.exec(first)?.[1] ?? '').task.artifacts[0].parts[0].text).toHaveLength(tokens);
  // Without turns of its own, the whole fold is in one of them: there were 3 in all.
  expect(turns).toBeGreaterThan(tokens / 1_000);
});
