import { AgentError, defineAgent } from 'rivulet';
import { chatModel, type Tool, toolLoop } from 'rivulet/llm';
import { calculator } from './_calculate.ts';
import { McpServers } from './_mcp-servers.ts';
import { findModel, localOllama, type Missing, type Model } from './_model.ts';

/** What the manifest says of the model: it is the first that a user reads. */
const descriptionFor = (found: Model | Missing): string =>
  'missing' in found ? `Not ready. ${found.missing}` : `Talks with ${found.name} at ${found.place}, and can calculate.`;

/**
 * Sends the session to a language model, and streams its answer token by token. The description says whether there is
 * a model. It is looked for again before each request, because Ollama may have been started meanwhile.
 */
export const createChat = async (ollama = localOllama, servers = new McpServers()) =>
  defineAgent(
    {
      name: 'chat',
      description: descriptionFor(await findModel(process.env, ollama)),
      input_content_types: ['text/*', 'image/*'],
      output_content_types: ['text/plain'],
      metadata: {
        license: 'MIT',
        programming_language: 'TypeScript',
        tags: ['example', 'llm', 'tools'],
        examples: ['Explain backpressure in three sentences', 'What is 17 % of 2,340?'],
        recommended_models: ['llama3.2'],
      },
    },
    toolLoop({
      model: chatModel(async () => {
        const found = await findModel(process.env, ollama);
        if ('missing' in found) throw new AgentError('llm_unreachable', found.missing);
        return { ...found, model: found.name };
      }),
      tools: async (context): Promise<Tool[]> => [calculator, ...(await servers.tools(context))],
    }),
    { durable: true },
  );

export default await createChat(localOllama, await McpServers.load(process.env));
