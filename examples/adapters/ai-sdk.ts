import { createOpenAI } from '@ai-sdk/openai';
import { ToolLoopAgent, tool } from 'ai';
import { defineAgent } from 'rivulet';
import { aiSdkAgent } from 'rivulet/adapters/ai-sdk';
import { z } from 'zod';

const { OPENAI_BASE_URL: baseURL = 'http://127.0.0.1:11434/v1', OPENAI_API_KEY: apiKey = 'none' } = process.env;
const { OPENAI_MODEL: model = 'llama3.2' } = process.env;

const sendMail = tool({
  description: 'Sends a mail.',
  inputSchema: z.object({ to: z.string(), text: z.string() }),
  needsApproval: true,
  execute: async ({ to }) => ({ sent: to }),
});

const secretary = new ToolLoopAgent({
  model: createOpenAI({ baseURL, apiKey }).chat(model),
  instructions: 'You write and send short mails.',
  tools: { sendMail },
});

/** An agent of the AI SDK. It asks a person before it sends a mail. */
export default defineAgent({ name: 'ai-sdk', description: 'Writes and sends mails.' }, aiSdkAgent(secretary), {
  durable: true,
});
