import { createOpenAI } from '@ai-sdk/openai';
import { jsonSchema, ToolLoopAgent, tool } from 'ai';
import { defineAgent } from 'rivulet';
import { aiSdkAgent } from 'rivulet/adapters/ai-sdk';
import { access, description, model, pay } from './_pay.js';

const inputSchema = jsonSchema({ type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] });
const payer = new ToolLoopAgent({
  model: createOpenAI(access).chat(model),
  tools: { pay: tool({ description, inputSchema, needsApproval: true, execute: pay }) },
});

export default defineAgent({ name: 'ai-sdk', description }, aiSdkAgent(payer), { durable: true });
