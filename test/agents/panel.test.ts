import type { Agent } from 'rivulet';
import { runAgent } from 'rivulet/testing';
import { NEVER, of } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import chat from '../../agents/chat.ts';
import echo from '../../agents/echo.ts';
import panel from '../../agents/panel.ts';
import summarize from '../../agents/summarize.ts';
import { agent } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { startLlm } from './llm.ts';

const text = 'Rivers carry water to the sea.';
const runWith = (calls: Record<string, Agent> = { chat }, said = text) =>
  runAgent(panel, said, { calls: { echo, summarize, ...calls } });

function setModel(url: string): void {
  vi.stubEnv('OPENAI_BASE_URL', url);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
}

/** The model may take as long as it likes: on a busy machine it takes longer than the panel waits. */
function waitForEver(): void {
  const { setInterval } = globalThis;
  const set = vi.spyOn(globalThis, 'setInterval');
  set.mockImplementation((run, after) => setInterval(run, after === 5_000 ? 2 ** 30 : after));
  onTestFinished(() => set.mockRestore());
}

describe('panel', () => {
  it('combines the output of the other agents, and streams the model’s output', async () => {
    const llm = await startLlm(() => ['To ', 'the ', 'Sea']);
    onTestFinished(() => llm.close());
    setModel(llm.url);
    waitForEver();
    const done = await runWith();
    expect(done.text).toBe(`You said: ${text}\nSummary: ${text}\nTitle: To the Sea`);
    const tokens = done.events.flatMap((event) => (event.type === 'message.part' ? event.part.content : []));
    expect(tokens.slice(-3)).toEqual(['To ', 'the ', 'Sea']);
  });

  it('sends the summary to the model', async () => {
    const llm = await startLlm(() => ['Sea']);
    onTestFinished(() => llm.close());
    setModel(llm.url);
    await runWith();
    expect(llm.requests.map(({ body }) => body.messages.at(-1)?.content)).toEqual([expect.stringContaining(text)]);
  });

  it('makes do with the summary when there is no model', async () => {
    setModel('http://127.0.0.1:9/v1'); // "discard": no server listens there
    const done = await runWith();
    expect(done.run.status).toBe('completed');
    expect(done.text).toBe(`You said: ${text}\nSummary: ${text}\nTitle: Rivers carry water to the`);
  });

  it.each([
    ['says nothing', { chat: agent('chat', () => []) }],
    ['is not hosted', {}],
  ])('makes do with the summary when the model %s', async (_, calls) => {
    expect((await runWith(calls)).text).toMatch(/Title: Rivers carry water to the$/);
  });

  it('aborts the call of a model without a token in five seconds', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    let signal: AbortSignal | undefined;
    const { promise: modelAsked, resolve: asked } = deferred();
    const silent = agent('chat', (_, context) => {
      signal = context.signal;
      asked();
      return NEVER;
    });
    const done = runWith({ summarize: agent('summarize', () => of(text)), chat: silent });
    await modelAsked;
    await vi.advanceTimersByTimeAsync(5_000);
    expect((await done).text).toMatch(/Title: Rivers carry water to the$/);
    expect(signal?.aborted).toBe(true);
  });

  it('fails as the summary does when there is no text', async () => {
    expect((await runWith({ chat }, '')).run.error?.code).toBe('invalid_input');
  });
});
