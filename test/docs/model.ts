import type { Answer, LlmRequest } from '../agents/llm.ts';

/**
 * The language model of README and docs: it refunds or looks up an order if it has the tool, and knows
 * one answer otherwise.
 */
export function docsModel({ body: { messages, tools = [] } }: LlmRequest): Answer {
  const has = (name: string) => tools.some((tool) => tool.type === 'function' && tool.function.name === name);
  if (has('refund')) {
    const refunded = messages.find(({ role }) => role === 'tool')?.content;
    return refunded === undefined ? [{ tool: 'refund', input: { number: 'A7', amount: 20 } }] : [String(refunded)];
  }
  const hasTool = has('order');
  if (!hasTool) return ['The sky ', 'is blue.'];
  const result = messages.find(({ role }) => role === 'tool')?.content;
  if (result === undefined) return [{ tool: 'order', input: { number: 'A7' } }];
  const { number, status, arrives } = JSON.parse(String(result));
  return [`Order ${number} `, `has ${status}, `, `and arrives on ${arrives}.`];
}
