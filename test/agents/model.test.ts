import { runAgent } from 'rivulet/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { findModel } from '../../agents/_model.ts';
import { createChat } from '../../agents/chat.ts';
import { answering } from '../support/answering.ts';
import { stoppedUrl } from '../support/ports.ts';

/** A server with Ollama's list of models, and a chat that repeats the name of the model. */
const startOllama = (models: readonly string[]): Promise<string> =>
  answering((request, response) => {
    if (request.url === '/api/tags') return response.end(JSON.stringify({ models: models.map((name) => ({ name })) }));
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const choice = { index: 0, delta: { role: 'assistant', content: JSON.parse(body).model } };
      const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice] };
      const last = { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
      response.setHeader('content-type', 'text/event-stream');
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
    });
  });

function setModel(url: string, model: string): void {
  vi.stubEnv('OPENAI_BASE_URL', url);
  vi.stubEnv('OPENAI_MODEL', model);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
}

describe('the model of chat', () => {
  it('is the first one of the Ollama on this computer', async () => {
    const url = await startOllama(['qwen3:4b', 'llama3.2']);
    expect(await findModel({}, url)).toMatchObject({ baseURL: `${url}/v1`, name: 'qwen3:4b' });
  });

  it('is the configured one, also of an Ollama', async () => {
    const url = await startOllama(['qwen3:4b']);
    expect(await findModel({ OPENAI_MODEL: 'mine' }, url)).toMatchObject({ name: 'mine' });
    const env = { OPENAI_BASE_URL: 'https://llm.example.com/v1', OPENAI_API_KEY: 'k' };
    // Ollama is not asked where a URL is set.
    expect(await findModel(env, 'http://127.0.0.1:1')).toEqual({
      baseURL: 'https://llm.example.com/v1',
      apiKey: 'k',
      name: 'llama3.2',
      place: 'llm.example.com',
    });
  });

  it('is missing without Ollama, and where Ollama has none', async () => {
    const stopped = await stoppedUrl();
    expect(await findModel({}, stopped)).toEqual({
      missing: expect.stringContaining(`start Ollama at ${stopped}, or set OPENAI_BASE_URL`),
    });
    expect(await findModel({}, await startOllama([]))).toEqual({
      missing: expect.stringContaining('ollama pull llama3.2'),
    });
  });
});

describe('chat', () => {
  it('says in its description whether it is ready', async () => {
    setModel('', '');
    const ready = await createChat(await startOllama(['qwen3:4b']));
    expect(ready.manifest.description).toBe('Talks with qwen3:4b at the Ollama of this computer, and can calculate.');
    const { description } = (await createChat(await stoppedUrl())).manifest;
    expect(description).toMatch(/^Not ready\. It needs a language model: start Ollama .*OPENAI_BASE_URL/);
  });

  it('talks with the Ollama on this computer', async () => {
    setModel('', '');
    const { text } = await runAgent(await createChat(await startOllama(['qwen3:4b'])), 'Hello');
    expect(text).toBe('qwen3:4b');
  });

  it('fails with what it needs', async () => {
    setModel('', '');
    const { run } = await runAgent(await createChat(await stoppedUrl()), 'Hello');
    expect(run.error?.message).toMatch(/needs a language model/);
    expect(run.error?.data?.code).toBe('llm_unreachable');
  });
});
