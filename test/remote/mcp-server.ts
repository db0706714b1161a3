import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { acceptedContent, createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { listenOn } from '../support/ports.ts';

/** What the tools have done, by name. */
export type Calls = Record<string, number>;

/** A server with a tool for each thing that a tool can do. */
export function toolServer(calls: Calls = {}, cancelled: string[] = []): McpServer {
  const server = new McpServer({ name: 'test-tools', version: '1.0.0' });
  const count = (name: string): void => {
    calls[name] = (calls[name] ?? 0) + 1;
  };
  server.registerTool(
    'add',
    {
      description: 'Adds two numbers.',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true },
    },
    ({ a, b }) => {
      count('add');
      const structuredContent = { sum: a + b };
      return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
    },
  );
  server.registerTool('show', { description: 'Shows one of each.' }, async (ctx) => {
    count('show');
    const { progressToken } = ctx.mcpReq._meta ?? {};
    if (progressToken !== undefined) {
      const params = { progressToken, progress: 1, total: 2, message: 'half' };
      await ctx.mcpReq.notify({ method: 'notifications/progress', params });
    }
    return {
      content: [
        { type: 'text', text: 'One.' },
        { type: 'image', data: 'iVBORw==', mimeType: 'image/png' },
        { type: 'resource_link', uri: 'https://example.com/a.pdf', name: 'a.pdf', mimeType: 'application/pdf' },
        { type: 'resource', resource: { uri: 'note://1', text: 'Noted.', mimeType: 'text/plain' } },
      ],
    };
  });
  server.registerTool('break', { description: 'Fails.' }, () => {
    count('break');
    return { content: [{ type: 'text', text: 'It is broken.' }], isError: true };
  });
  server.registerTool(
    'pay',
    { description: 'Pays once.', inputSchema: z.object({ amount: z.number() }) },
    async ({ amount }) => {
      count('pay');
      return { content: [{ type: 'text', text: `Paid ${amount}.` }] };
    },
  );
  server.registerTool('hang', { description: 'Never ends.' }, async (ctx) => {
    count('hang');
    await new Promise<void>((resolve) => ctx.mcpReq.signal.addEventListener('abort', () => resolve()));
    cancelled.push('hang');
    return { content: [] };
  });
  server.registerTool('large', { description: 'Returns much.' }, () => ({
    content: [{ type: 'text', text: 'x'.repeat(10_000) }],
  }));
  server.registerTool('greet', { description: 'Asks for a name.' }, async (ctx) => {
    count('greet');
    const schema = z.object({ name: z.string() });
    const given = acceptedContent(ctx.mcpReq.inputResponses, 'name', schema);
    if (given === undefined) {
      const asked = inputRequired.elicit({ message: 'What is your name?', requestedSchema: schema });
      return inputRequired({ inputRequests: { name: asked }, requestState: 'asked' });
    }
    return { content: [{ type: 'text', text: `Hello ${given.name}.` }] };
  });
  return server;
}

export interface McpHttpServer {
  readonly url: string;
  readonly calls: Calls;
  readonly cancelled: string[];
  readonly headers: (string | undefined)[];
  close(): Promise<void>;
}

/** The tools over streamable HTTP, in the current version or, with one session, in those of 2025. */
export async function startMcp(era: 'modern' | 'legacy' = 'modern'): Promise<McpHttpServer> {
  const calls: Calls = {};
  const cancelled: string[] = [];
  const headers: (string | undefined)[] = [];
  const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
  if (era === 'legacy') await toolServer(calls, cancelled).connect(transport);
  const handler =
    era === 'modern'
      ? toNodeHandler(createMcpHandler(() => toolServer(calls, cancelled)))
      : transport.handleRequest.bind(transport);
  const server = createServer((request, response) => {
    headers.push(request.headers.authorization);
    void handler(request, response);
  });
  const url = await listenOn(server);
  return {
    url: `${url}/mcp`,
    calls,
    cancelled,
    headers,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
