import { expect, it } from 'vitest';
import { approvalParts, type Message, saidIn, trajectory } from '../../src/index.ts';

const text = (content: string) => ({ content_type: 'text/plain', content });
const user = (content: string): Message => ({ role: 'user', parts: [text(content)] });
const agent = (...parts: Message['parts']): Message => ({ role: 'agent/a', parts });
const shown = (messages: Message[]) =>
  saidIn(messages).map(({ role, parts, calls }) => [role, parts.map(({ content }) => content).join(''), ...calls]);

it('has each call with its result, also where that came in a later message', () => {
  const call = trajectory({ tool_name: 'pay', tool_call_id: '1', tool_input: { amount: 5 } });
  const result = trajectory({ tool_name: 'pay', tool_call_id: '1', tool_output: { paid: 5 } });
  const approval: Message = { role: 'agent', parts: approvalParts('pay', { amount: 5 }) };
  expect(
    shown([user('Pay'), agent(text('One moment.'), call), approval, user('true'), agent(result), agent(text('Done.'))]),
  ).toEqual([
    ['user', 'Pay'],
    ['agent', 'One moment.', { id: 'call_3', name: 'pay', input: { amount: 5 }, result: { tool_output: { paid: 5 } } }],
    ['agent', 'Done.'],
  ]);
});

it('keeps the message of a user after an approval that was never answered', () => {
  const approval: Message = { role: 'agent', parts: approvalParts('pay', { amount: 5 }) };
  expect(shown([user('Pay'), approval, user('Never mind')])).toEqual([
    ['user', 'Pay'],
    ['user', 'Never mind'],
  ]);
});

it('says what follows a result apart from what came before, and leaves out steps for people', () => {
  const whole = trajectory({ tool_name: 'add', tool_input: { a: 1 }, tool_output: { sum: 2 } });
  const open = trajectory({ tool_name: 'slow', tool_input: {} });
  expect(
    shown([
      agent(text('a'), trajectory({ message: 'Thinking.' }), whole, text('b'), open),
      user('?'),
      agent(trajectory({ tool_name: 'slow', tool_output: {} })),
    ]),
  ).toEqual([
    ['agent', 'a', { id: 'call_3', name: 'add', input: { a: 1 }, result: { tool_output: { sum: 2 } } }],
    ['agent', 'b', { id: 'call_5', name: 'slow', input: {}, result: {} }],
    ['user', '?'],
    ['agent', '', { id: 'call_7', name: 'slow', input: {}, result: { tool_output: {} } }],
  ]);
});
