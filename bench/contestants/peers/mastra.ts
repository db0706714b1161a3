/**
 * Mastra: its Hono adapter, as its guide for Hono has it, on Node's server, with an agent whose model emits the tokens.
 * Asked by POST /api/agents/tokens/stream, which answers text-delta events. Logger and telemetry are off, as it has no storage.
 */
import { serve } from '@hono/node-server';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { type HonoBindings, type HonoVariables, MastraServer } from '@mastra/hono';
import { Hono } from 'hono';
import { emit, readAsked, report } from '../tokens.ts';

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

/** What a model of the AI SDK streams, made from tokens. */
const stream = (asked: string): ReadableStream =>
  new ReadableStream({
    start: (controller) => {
      controller.enqueue({ type: 'stream-start', warnings: [] });
      controller.enqueue({ type: 'text-start', id: 'text' });
      emit(
        readAsked(asked),
        (delta) => controller.enqueue({ type: 'text-delta', id: 'text', delta }),
        () => {
          controller.enqueue({ type: 'text-end', id: 'text' });
          controller.enqueue({ type: 'finish', finishReason: 'stop', usage });
          controller.close();
        },
      );
    },
  });

const tokens = new Agent({
  id: 'tokens',
  name: 'tokens',
  instructions: 'Emit tokens.',
  model: {
    specificationVersion: 'v2',
    provider: 'bench',
    modelId: 'tokens',
    supportedUrls: {},
    doGenerate: async (): Promise<never> => {
      throw new Error('it only streams');
    },
    doStream: async ({ prompt }) => {
      const said = prompt.findLast(({ role }) => role === 'user')?.content;
      const [part] = typeof said === 'object' ? said : [];
      return { stream: stream(part?.type === 'text' ? part.text : '') };
    },
  },
});

const app = new Hono<{ Bindings: HonoBindings; Variables: HonoVariables }>();
await new MastraServer({ app, mastra: new Mastra({ agents: { tokens }, logger: false }) }).init();
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => report(port));
