import type { Answer, LlmRequest } from '../agents/llm.ts';

/** The language model of README and docs: it looks up an order if it has the tool, and knows one answer otherwise. */
export function docsModel({ body: { messages, tools = [] } }: LlmRequest): Answer {
  const hasTool = tools.some((tool) => tool.type === 'function' && tool.function.name === 'order');
  if (!hasTool) return ['The sky ', 'is blue.'];
  const result = messages.find(({ role }) => role === 'tool')?.content;
  if (result === undefined) return [{ tool: 'order', input: { number: 'A7' } }];
  const { number, status, arrives } = JSON.parse(String(result));
  return [`Order ${number} `, `has ${status}, `, `and arrives on ${arrives}.`];
}
