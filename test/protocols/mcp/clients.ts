import { Client, type ElicitResult, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';

export interface Asked {
  readonly message: string;
  readonly requestedSchema?: unknown;
}

interface ClientOptions {
  /** Answers the questions of tools. Absent: the client has no forms. */
  readonly answer?: (asked: Asked) => ElicitResult;
  readonly fetch?: typeof fetch;
}

interface CallOptions {
  readonly onprogress?: (progress: { progress: number; message?: string }) => void;
  readonly signal?: AbortSignal;
}

export interface Result {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
  readonly _meta?: Record<string, unknown>;
}

/** What the tests use of an official client. */
interface TestClient {
  listTools(): Promise<{ tools: readonly { readonly name: string; readonly title?: string; inputSchema: object }[] }>;
  call(name: string, args: Record<string, unknown>, options?: CallOptions): Promise<Result>;
  close(): Promise<void>;
  readonly errors: readonly Error[];
}

const info = { name: 'test', version: '1.0.0' };
const reconnectionOptions = {
  initialReconnectionDelay: 1,
  maxReconnectionDelay: 5,
  reconnectionDelayGrowFactor: 1,
  maxRetries: 100,
};

type Open = (url: string, options?: ClientOptions) => Promise<TestClient>;

const open2 =
  (modern: boolean): Open =>
  async (url, { answer, fetch } = {}) => {
    const client = new Client(info, {
      capabilities: answer === undefined ? {} : { elicitation: { form: {} } },
      ...(modern && { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    });
    const errors: Error[] = [];
    client.onerror = (error) => errors.push(error);
    if (answer !== undefined) {
      client.setRequestHandler('elicitation/create', async ({ params }) => answer(params));
    }
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { reconnectionOptions, ...(fetch && { fetch }) }),
    );
    onTestFinished(() => client.close());
    return {
      errors,
      listTools: () => client.listTools(),
      close: () => client.close(),
      call: async (name, args, options) => (await client.callTool({ name, arguments: args }, options)) as Result,
    };
  };

const open1: Open = async (url, { answer, fetch } = {}) => {
  const client = new Client1(info, { capabilities: answer === undefined ? {} : { elicitation: {} } });
  const errors: Error[] = [];
  client.onerror = (error) => errors.push(error);
  if (answer !== undefined) client.setRequestHandler(ElicitRequestSchema, async ({ params }) => answer(params));
  const transport = new Transport1(new URL(`${url}/mcp`), { reconnectionOptions, ...(fetch && { fetch }) });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  onTestFinished(() => client.close());
  return {
    errors,
    listTools: () => client.listTools(),
    close: () => client.close(),
    call: async (name, args, options) =>
      (await client.callTool({ name, arguments: args }, undefined, options)) as Result,
  };
};

/** The official clients, in each era that they speak. */
export const clients: [name: string, open: Open, modern: boolean][] = [
  ['@modelcontextprotocol/client, modern', open2(true), true],
  ['@modelcontextprotocol/client, older era', open2(false), false],
  ['@modelcontextprotocol/sdk 1', open1, false],
];
