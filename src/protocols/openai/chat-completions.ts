import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Access } from '../../engine/access.ts';
import type { RunOptions } from '../../engine/runs/create.ts';
import { nameRun, sendJson } from '../../http/requests/respond.ts';
import { runOptions } from '../../http/requests/run-requests.ts';
import { after } from '../../http/sse/projection.ts';
import { RunHeaders } from '../../schema/api.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { answerCall } from './answers.ts';
import { type ChatState, chatErrorFrame, chatProjection, completionObject } from './chat-projection.ts';
import { type AskedCompletion, ChatRequest, readChatRequest } from './chat-request.ts';
import { errorInStream } from './errors.ts';

/** OpenAI's Chat Completions: the client has the history, and no means to come back to a run. */
export const chatRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, { access, responder }) => {
  app.post(
    '/chat/completions',
    {
      config: { scope: 'runs:write', work: 'creates' },
      schema: { hide: true, headers: RunHeaders, body: ChatRequest },
    },
    async (request, reply) => {
      const { model, stream = false, stream_options } = request.body;
      const asked = readChatRequest(request.body);
      const own = access(request);
      responder.admit(own, stream ? 'stream' : 'sync');
      // A client that is gone has lost the answer.
      const options: RunOptions = { on_disconnect: 'cancel', ...runOptions(request.headers) };
      const { run_id, after: seen } = await begin(own, model, asked, options);
      nameRun(reply, run_id);
      // A client that repeats the request would make another run.
      reply.header('x-should-retry', 'false');
      const projection = chatProjection({
        usage: stream && stream_options?.include_usage === true,
        whole: !stream,
        tools: (asked.request.tools ?? []).map(({ name }) => name),
      });
      const ended = ({ outcome }: ChatState): string => {
        // As if the client had disconnected: it has no way to answer. An error means that the run has ended.
        const isLost = outcome?.finish === 'question' && options.on_disconnect === 'cancel';
        if (isLost) void own.cancel(run_id).catch(() => undefined);
        return '';
      };
      if (stream) {
        const from = after(seen);
        return responder.project(reply, own, run_id, { projection, from, interrupted: chatErrorFrame, end: ended });
      }
      const state = await responder.settledState(reply, own, run_id, projection, { after: seen });
      ended(state);
      if (state.outcome?.finish !== 'error') return sendJson(reply, completionObject(state));
      const { error } = state.outcome;
      const status = { server_error: 500, invalid_input: 400, not_found: 404 }[error.code];
      return sendJson(reply.code(status), JSON.stringify({ error: errorInStream(error) }));
    },
  );
};

/** Resumes the run that waits for the last message, or else makes one with the whole list as its input. */
async function begin(own: Access, model: string, { messages, request, answer }: AskedCompletion, options: RunOptions) {
  const resumed = answer && (await answerCall(own, model, answer, options));
  return resumed ?? own.create({ agent_name: model, input: messages }, { ...options, request });
}
