import { Type } from '@sinclair/typebox';
import { defineAgent } from 'rivulet';
import { chatModel, tool, toolLoop } from 'rivulet/llm';
import { access, description, model, pay } from './_pay.js';

const input = Type.Object({ amount: Type.Number() });
const loop = toolLoop({
  model: chatModel({ ...access, model }),
  tools: [tool({ name: 'pay', description, input, approval: true, run: pay })],
});

export default defineAgent({ name: 'tool-loop', description }, loop, { durable: true });
