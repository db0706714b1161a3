import type { Run } from 'rivulet';
import { NEVER, of } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import chat from '../../agents/chat.ts';
import echo from '../../agents/echo.ts';
import panel from '../../agents/panel.ts';
import summarize from '../../agents/summarize.ts';
import { agent } from '../support/agents.ts';
import { ask, eventsOf, serve, textOf } from '../support/serve.ts';
import { startLlm } from './llm.ts';

const text = 'Rivers carry water to the sea.';
const panelWith = (other = chat) => serve([panel, echo, summarize, other]);
const run = async (served: Awaited<ReturnType<typeof serve>>, said = text): Promise<Run> =>
  (await served.post('/runs', ask('panel', said))).json();

function setModel(url: string): void {
  vi.stubEnv('OPENAI_BASE_URL', url);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
}

describe('panel', () => {
  it('puts together what the others make of a text, and streams what the model says', async () => {
    const llm = await startLlm(() => ['To ', 'the ', 'Sea']);
    onTestFinished(() => llm.close());
    setModel(llm.url);
    const served = await panelWith();
    const done = await run(served);
    expect(textOf(done)).toBe(`You said: ${text}\nSummary: ${text}\nTitle: To the Sea`);
    const parts = (await eventsOf(served, done.run_id)).flatMap((event) =>
      event.type === 'message.part' ? event.part.content : [],
    );
    expect(parts.slice(-3)).toEqual(['To ', 'the ', 'Sea']);
  });

  it('hands the summary on to the model', async () => {
    const llm = await startLlm(() => ['Sea']);
    onTestFinished(() => llm.close());
    setModel(llm.url);
    await run(await panelWith());
    expect(llm.requests.map(({ body }) => body.messages.at(-1)?.content)).toEqual([expect.stringContaining(text)]);
  });

  it('makes do with the summary when there is no model', async () => {
    setModel('http://127.0.0.1:9/v1'); // "discard": nobody listens there
    const done = await run(await panelWith());
    expect(done.status).toBe('completed');
    expect(textOf(done)).toBe(`You said: ${text}\nSummary: ${text}\nTitle: Rivers carry water to the`);
  });

  it.each([
    ['says nothing', agent('chat', () => [])],
    ['is not hosted', agent('other', () => [])],
  ])('makes do with the summary when the model %s', async (_, other) => {
    expect(textOf(await run(await panelWith(other)))).toMatch(/Title: Rivers carry water to the$/);
  });

  it('lets go of a model that has not said a word in five seconds', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    let signal: AbortSignal | undefined;
    let asked = (): void => {};
    const modelAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const silent = agent('chat', (_, context) => {
      signal = context.signal;
      asked();
      return NEVER;
    });
    const served = await serve([panel, echo, agent('summarize', () => of(text)), silent]);
    const done = run(served);
    await modelAsked;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(textOf(await done)).toMatch(/Title: Rivers carry water to the$/);
    expect(signal?.aborted).toBe(true);
  });

  it('fails as the summary does when there is no text', async () => {
    expect((await run(await panelWith(), '')).error?.code).toBe('invalid_input');
  });
});
