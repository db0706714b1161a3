import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Agent } from 'rivulet';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { McpServers } from '../../agents/_mcp-servers.ts';
import { createChat } from '../../agents/chat.ts';
import { type McpHttpServer, startMcp } from '../remote/mcp-server.ts';
import { newFolder } from '../support/folder.ts';
import { type Answer, type LlmRequest, startLlm } from './llm.ts';

function fileOf(mcpServers: unknown): string {
  const folder = newFolder(onTestFinished);
  const path = join(folder, 'mcp.json');
  writeFileSync(path, JSON.stringify({ mcpServers }));
  return path;
}

/** A chat whose model calls a tool of an MCP server, and then says what came of it. */
async function chatWith(
  tool: string,
  input: unknown,
  more: object = {},
): Promise<{ chat: Agent; server: McpHttpServer; requests: readonly LlmRequest[] }> {
  const server = await startMcp();
  onTestFinished(() => server.close());
  const script = ({ body }: LlmRequest): Answer => {
    const last = body.messages.at(-1);
    return last?.role === 'tool' ? [`It says: ${last.content}`] : ['Let me see. ', { tool, input }];
  };
  const llm = await startLlm(script);
  onTestFinished(() => llm.close());
  vi.stubEnv('OPENAI_BASE_URL', llm.url);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const path = fileOf({ kit: { url: server.url, allowNetworks: ['127.0.0.1'], ...more } });
  const tools = await McpServers.load({ MCP_SERVERS: path });
  return { chat: await createChat(undefined, tools), server, requests: llm.requests };
}

describe('chat with MCP servers', () => {
  it('offers their tools to the model, calls them and shows the calls', async () => {
    const { chat, requests } = await chatWith('kit__add', { a: 1, b: 2 });
    const { run, parts, text } = await runAgent(chat, 'What is 1 + 2?');
    expect(run.error).toBeUndefined();
    expect(requests[0]?.body.tools).toContainEqual({
      type: 'function',
      function: expect.objectContaining({ name: 'kit__add', description: 'Adds two numbers.' }),
    });
    const steps = parts.flatMap(({ metadata }) => (metadata?.kind === 'trajectory' ? [metadata] : []));
    expect(steps).toMatchObject([
      { tool_name: 'add', tool_input: { a: 1, b: 2 } },
      { tool_name: 'add', tool_output: { sum: 3 } },
    ]);
    expect(text).toContain('It says: {"sum":3}');
  });

  it('tells the model what a tool says of its failure', async () => {
    const { chat } = await chatWith('kit__break', {});
    expect((await runAgent(chat, 'Go')).text).toContain('It says: Error: It is broken.');
  });

  it.each(['[1]', '{"a'])('tells the model that %s is no JSON object', async (input) => {
    const { chat, server } = await chatWith('kit__add', input);
    expect((await runAgent(chat, 'Go')).text).toContain('not a JSON object');
    expect(server.calls.add).toBeUndefined();
  });

  it.each([
    ['true', 1, 'Paid 5.'],
    ['false', undefined, 'did not allow'],
  ])('asks before a tool that needs an approval: the reply %s', async (answer, calls, said) => {
    const { chat, server } = await chatWith('kit__pay', { amount: 5 }, { approve: ['pay'] });
    const { text, questions } = await runAgent(chat, 'Pay', { answers: [answer] });
    expect(questions[0]).toMatchObject({ schema: { type: 'boolean' } });
    expect(server.calls.pay).toBe(calls);
    expect(text).toContain(said);
  });

  it('passes on what a tool asks', async () => {
    const { chat } = await chatWith('kit__greet', {});
    const answers = [{ content_type: 'application/json', content: '{"name":"Ada"}' }];
    expect((await runAgent(chat, 'Greet', { answers })).text).toContain('It says: Hello Ada.');
  });

  it('works without a server that is gone', async () => {
    const { chat, server } = await chatWith('calculate', { expression: '1 + 2' });
    await server.close();
    expect((await runAgent(chat, 'Go')).text).toContain('It says: {"result":"3"}');
  });

  it('calls a tool once and ends alike, wherever it is cut off', async () => {
    const { chat } = await chatWith('kit__add', { a: 1, b: 2 });
    const { run } = await cutEverywhere(chat, 'What is 1 + 2?', { endOf: ({ status }) => status });
    expect(run.status).toBe('completed');
  });

  it('starts servers that the file has as commands', async () => {
    const args = ['--import', 'tsx', fileURLToPath(new URL('../remote/mcp-stdio.ts', import.meta.url))];
    const { chat } = await chatWith('kit__add', { a: 2, b: 2 }, { url: undefined, command: process.execPath, args });
    expect((await runAgent(chat, 'Go')).text).toContain('{"sum":4}');
  });

  it('names what is wrong with the file', async () => {
    const load = (servers: unknown): Promise<McpServers> => McpServers.load({ MCP_SERVERS: fileOf(servers) });
    await expect(load({ kit: { url: 1 } })).rejects.toThrow('/mcpServers/kit/url: Expected string');
    await expect(load({ kit: {} })).rejects.toThrow('mcpServers/kit: expected a url or a command');
  });
});
