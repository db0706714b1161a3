/**
 * The protocols' projections, and what a server with the official libraries makes of the same log: it parses each event,
 * and the library writes it. A row each; a protocol that has no projection in `src` is left out.
 */
import { existsSync } from 'node:fs';
import { StreamResponse } from '@a2a-js/sdk';
import { AgentEvent, DefaultExecutionEventBus, ExecutionEventQueue } from '@a2a-js/sdk/server';
import { EventType } from '@ag-ui/client';
import { EventEncoder } from '@ag-ui/encoder';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { createUIMessageStreamResponse, type UIMessageChunk } from 'ai';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import type {
  Response,
  ResponseOutputMessage,
  ResponseOutputText,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses';
import { z } from 'zod';
import type { Batch } from '../src/core/ports/run-store.ts';
import { eventFrames } from '../src/http/requests/respond.ts';
import { type Projection, Projector } from '../src/http/sse/projection.ts';
import type { Event } from '../src/index.ts';
import { a2aFrames } from '../src/protocols/a2a/projection.ts';
import { sharedProjections } from '../src/protocols/durable-streams/projection.ts';

/** The stored log of an answer. */
export type Log = readonly Batch[];

function* tokensOf(log: Log): Generator<string> {
  for (const { lines } of log) {
    for (const line of lines) {
      const event: Event = JSON.parse(line);
      if (event.type === 'message.part') yield event.part.content ?? '';
    }
  }
}

export type Write = (frames: string | Uint8Array) => void;

export interface Row {
  readonly id: string;
  /** Id of the row with the official library of the same protocol. */
  readonly library?: string;
  /** Resolves to what makes all frames of a log; undefined where the protocol is not there. */
  prepare(): Promise<((log: Log, write: Write) => void | Promise<void>) | undefined>;
}

const source = (path: string): URL => new URL(`../src/protocols/${path}`, import.meta.url);

const isProjection = (value: unknown): value is Projection<unknown> =>
  typeof value === 'object' && value !== null && 'project' in value;

/** A projection that a module exports, or that its export makes for a request. */
async function exported(path: string, name: string, request?: object): Promise<Projection<unknown> | undefined> {
  const url = source(path);
  if (!existsSync(url)) return undefined;
  const module: Record<string, unknown> = await import(url.href);
  const found = module[name];
  const projection: unknown = typeof found === 'function' ? found(request) : found;
  if (!isProjection(projection)) throw new Error(`${path} exports no projection ${name}`);
  return projection;
}

const projected = (id: string, find: () => Promise<Projection<unknown> | undefined>, library?: string): Row => ({
  id,
  ...(library !== undefined && { library }),
  async prepare() {
    const projection = await find();
    if (projection === undefined) return undefined;
    return (log, write) => {
      const projector = new Projector(projection);
      // A copy, as the engine makes batches: a batch keeps the frames of its first reader.
      for (const { first, lines } of log) for (const { text } of projector.piecesOf({ first, lines })) write(text);
    };
  },
});

const encoder: Row = {
  id: '@ag-ui/encoder',
  prepare: async () => (log, write) => {
    const events = new EventEncoder({ accept: 'text/event-stream' });
    const messageId = 'answer';
    for (const delta of tokensOf(log)) {
      const event = { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta } as const;
      write(events.encode(event));
    }
  },
};

const response: Row = {
  id: 'ai, createUIMessageStreamResponse',
  prepare: async () => async (log, write) => {
    const tokens = tokensOf(log);
    const stream = new ReadableStream<UIMessageChunk>({
      pull(controller) {
        const { value, done } = tokens.next();
        if (done) controller.close();
        else controller.enqueue({ type: 'text-delta', id: 'answer', delta: value });
      },
    });
    for await (const bytes of createUIMessageStreamResponse({ stream }).body ?? []) write(bytes);
  },
};

// OpenAI has no library for servers, so these write what an app would, with the types of its client.

/** The last events repeat the whole text, as in OpenAI's own streams: clients take it from there. */
const responseEvents: Row = {
  id: 'JSON.stringify, Responses',
  prepare: async () => (log, write) => {
    let sequence_number = 4;
    const send = (event: ResponseStreamEvent): void => {
      write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
      sequence_number += 1;
    };
    const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
    let text = '';
    for (const delta of tokensOf(log)) {
      send({ type: 'response.output_text.delta', sequence_number, ...place, delta, logprobs: [] });
      text += delta;
    }
    const part: ResponseOutputText = { type: 'output_text', text, annotations: [], logprobs: [] };
    const item: ResponseOutputMessage = {
      type: 'message',
      id: place.item_id,
      status: 'completed',
      role: 'assistant',
      content: [part],
    };
    send({ type: 'response.output_text.done', sequence_number, ...place, text, logprobs: [] });
    send({ type: 'response.content_part.done', sequence_number, ...place, part });
    send({ type: 'response.output_item.done', sequence_number, output_index: 0, item });
    send({ type: 'response.completed', sequence_number, response: { ...openAiResponse, output: [item] } });
  },
};

const openAiResponse: Response = {
  id: 'resp_1',
  object: 'response',
  created_at: 0,
  model: 'tokens',
  output: [],
  // Clients make this field.
  output_text: '',
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  parallel_tool_calls: true,
  temperature: null,
  tool_choice: 'auto',
  tools: [],
  top_p: null,
};

const chatChunks: Row = {
  id: 'JSON.stringify, Chat Completions',
  prepare: async () => (log, write) => {
    for (const content of tokensOf(log)) {
      const chunk: ChatCompletionChunk = {
        id: 'chatcmpl-1',
        object: 'chat.completion.chunk',
        created: 0,
        model: 'tokens',
        choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
      };
      write(`data: ${JSON.stringify(chunk)}\n\n`);
    }
  },
};

/**
 * The event path of a2a-js: an event of its kind, on its bus, as the proto's JSON, in the frame of a JSON-RPC stream. Without
 * the task store, which copies the task at each event.
 */
const a2aJs: Row = {
  id: '@a2a-js/sdk, event bus',
  prepare: async () => async (log, write) => {
    const bus = new DefaultExecutionEventBus();
    const queue = new ExecutionEventQueue(bus);
    const events = queue.events();
    const { taskId, contextId } = a2aTask;
    const artifactId = 'a1';
    for (const value of tokensOf(log)) {
      const part = { content: { $case: 'text' as const, value }, metadata: undefined, filename: '', mediaType: '' };
      const artifact = { artifactId, name: '', description: '', parts: [part], metadata: undefined, extensions: [] };
      bus.publish(
        AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: true, lastChunk: false, metadata: undefined }),
      );
      const { value: event } = await events.next();
      if (event?.kind !== 'artifactUpdate') throw new Error('expected the event that was published');
      const result = StreamResponse.toJSON({ payload: { $case: 'artifactUpdate', value: event.data } });
      write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`);
    }
    bus.finished();
  },
};

const a2aTask = {
  taskId: '01a201c2-4407-7001-80bc-e75f1d221442',
  contextId: '01a201c2-4407-7001-80bc-e75f1d221443',
};
/** Its server sends each notification of progress with a write of its own. */
const mcpServer: Row = {
  id: '@modelcontextprotocol/server',
  prepare: async () => async (log, write) => {
    const handler = createMcpHandler(() => {
      const server = new McpServer({ name: 'bench', version: '1.0.0' });
      server.registerTool('tokens', { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
        let progress = 0;
        for (const message of tokensOf(log)) {
          progress += 1;
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: 1, progress, message } });
        }
        return { content: [] };
      });
      return server;
    });
    const response = await handler.fetch(
      new Request('http://127.0.0.1/mcp', { method: 'POST', headers: mcpHeaders, body: JSON.stringify(mcpCall) }),
    );
    for await (const bytes of response.body ?? []) write(bytes);
  },
};

const mcpHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 'tokens',
};
const mcpCall = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'tokens',
    arguments: {},
    _meta: {
      progressToken: 1,
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

const agUi = { threadId: 'thread', runId: 'run', modern: true };
const toolCall = {
  id: 1,
  token: 1,
  modern: true,
  asks: true,
  everyToken: true,
  begins: true,
  run_id: '01a201c2-4407-7001-80bc-e75f1d221442',
  stateOf: () => '',
};
const echo = { previous: null, background: false, fields: '' };

/** The first row is the one that all others are compared with. */
export const rows: readonly Row[] = [
  projected('ACP', async () => eventFrames),
  projected('Durable Streams', async () => sharedProjections()('1')),
  projected('AI SDK', () => exported('ai-sdk/projection.ts', 'uiStream'), response.id),
  response,
  projected('AG-UI', () => exported('ag-ui/projection.ts', 'agUiFrames', agUi), encoder.id),
  encoder,
  projected(
    'OpenAI Responses',
    () => exported('openai/responses-projection.ts', 'responsesProjection', echo),
    responseEvents.id,
  ),
  responseEvents,
  projected(
    'OpenAI Chat Completions',
    () => exported('openai/chat-projection.ts', 'chatProjection', { usage: false, asksUser: false, whole: false }),
    chatChunks.id,
  ),
  chatChunks,
  projected('A2A, HTTP+JSON', async () => a2aFrames(a2aTask, []), a2aJs.id),
  projected('A2A, JSON-RPC', async () => a2aFrames(a2aTask, [], { id: '1' }), a2aJs.id),
  a2aJs,
  projected('MCP, each token', () => exported('mcp/projection.ts', 'mcpFrames', toolCall), mcpServer.id),
  mcpServer,
];
