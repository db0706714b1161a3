import { createOpenAI } from '@ai-sdk/openai';
import { jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { defineAgent } from 'rivulet';
import { aiSdkAgent } from 'rivulet/adapters/ai-sdk';
import { access, description, model, pay } from './_pay.js';

const inputSchema = jsonSchema({ type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] });
const settings = {
  model: createOpenAI(access).chat(model),
  tools: { pay: tool({ description, inputSchema, needsApproval: true, execute: pay }) },
  stopWhen: stepCountIs(5),
};

export default defineAgent(
  { name: 'ai-sdk-function', description },
  aiSdkAgent((messages, { signal }) => streamText({ ...settings, messages, abortSignal: signal })),
  { durable: true },
);
