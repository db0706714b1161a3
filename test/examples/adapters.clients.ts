import { readdir } from 'node:fs/promises';
import type { Agent } from 'rivulet';
import { runAgent } from 'rivulet/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { startLlm } from '../agents/llm.ts';

const files = await readdir(new URL('../../examples/adapters/', import.meta.url));

/** A model that sends a mail, and then tells what became of it. */
const llm = await startLlm(({ body: { messages } }) => {
  const result = messages.find(({ role }) => role === 'tool');
  const both = JSON.stringify(messages).includes('Greet both');
  const call = (to: string) => ({ tool: 'sendMail', input: { to, text: 'Hi' } });
  if (result === undefined) return ['Dear Ada. ', call('Ada'), ...(both ? [call('Bob')] : [])];
  return ['The tool says: ', String(result.content)];
});
process.env.OPENAI_BASE_URL = llm.url;
const agents = await Promise.all(
  files.map(async (name): Promise<Agent> => (await import(`../../examples/adapters/${name.slice(0, -3)}.ts`)).default),
);

afterAll(async () => {
  await llm.close();
  delete process.env.OPENAI_BASE_URL;
});

describe.each(agents)('the example $manifest.name', (agent) => {
  const [yes, no] = agent.manifest.name === 'langgraph' ? ['yes', 'no'] : ['true', 'false'];

  it('is named after its file', () => {
    expect(files).toContain(`${agent.manifest.name}.ts`);
  });

  it('sends the mail when a person agrees', async () => {
    const { run, parts, questions } = await runAgent(agent, 'Greet Ada', { answers: [yes] });
    expect([run.status, questions.length]).toEqual(['completed', 1]);
    expect(parts.find(({ metadata }) => metadata?.kind === 'trajectory')?.metadata).toMatchObject({
      tool_name: 'sendMail',
      tool_input: { to: 'Ada', text: 'Hi' },
    });
    const texts = parts.flatMap(({ content }) => content ?? []);
    expect(texts).toEqual(['Dear Ada. ', expect.stringMatching(/^The tool says: .*sent/i)]);
  });

  it('does each of two calls once, after an answer of its own', async () => {
    const { run, questions } = await runAgent(agent, 'Greet both', { answers: [yes, no] });
    expect([run.status, questions.length]).toEqual(['completed', 2]);
    const { messages } = llm.requests.at(-1)?.body ?? { messages: [] };
    const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
    expect(results).toHaveLength(2);
    expect(results.filter((result) => /Sent to|"sent"/.test(result))).toEqual([expect.stringContaining('Ada')]);
  });

  it('does not send it when the person refuses', async () => {
    const { run, text } = await runAgent(agent, 'Greet Ada', { answers: [no] });
    expect(run.status).toBe('completed');
    expect(text).toMatch(/not|denied/);
  });
});
