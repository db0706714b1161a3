import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { defineAgent } from 'rivulet';
import { openAiAgent } from 'rivulet/adapters/openai-agents';
import { z } from 'zod';

const { OPENAI_BASE_URL: baseURL = 'http://127.0.0.1:11434/v1', OPENAI_API_KEY: apiKey = 'none' } = process.env;
const { OPENAI_MODEL: model = 'llama3.2' } = process.env;

const sendMail = tool({
  name: 'sendMail',
  description: 'Sends a mail.',
  parameters: z.object({ to: z.string(), text: z.string() }),
  needsApproval: true,
  execute: async ({ to }) => ({ sent: to }),
});

const secretary = new Agent({
  name: 'Secretary',
  instructions: 'You write and send short mails.',
  model,
  tools: [sendMail],
});

// Only for a server that has no Responses API, such as Ollama; with OpenAI itself, no runner is needed.
const modelProvider = new OpenAIProvider({ baseURL, apiKey, useResponses: false });
const runner = new Runner({ modelProvider, tracingDisabled: true });

/** An agent of the OpenAI Agents SDK. It asks a person before it sends a mail. */
export default defineAgent(
  { name: 'openai-agents', description: 'Writes and sends mails.' },
  openAiAgent(secretary, { runner }),
  { durable: true },
);
