import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { defineAgent } from 'rivulet';
import { openAiAgent } from 'rivulet/adapters/openai-agents';
import { z } from 'zod';
import { access, description, model, pay } from './_pay.js';

const parameters = z.object({ amount: z.number() });
const payer = new Agent({
  name: 'payer',
  model,
  tools: [tool({ name: 'pay', description, parameters, needsApproval: true, execute: pay })],
});
const modelProvider = new OpenAIProvider({ ...access, useResponses: false });
const runner = new Runner({ modelProvider, tracingDisabled: true });

export default defineAgent({ name: 'openai-agents', description }, openAiAgent(payer, { runner }), { durable: true });
