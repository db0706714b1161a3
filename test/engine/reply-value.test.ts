import { Type } from '@sinclair/typebox';
import { type AgentReply, json } from 'rivulet';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { map } from 'rxjs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { agent, durable } from '../support/agents.ts';

const schema = Type.Object({ amount: Type.Integer(), when: Type.Optional(Type.String()) });

describe('the value of a reply', () => {
  const order = durable('order', async (_, context) => {
    const { value } = await context.await('How many?', { schema });
    expectTypeOf(value).toEqualTypeOf<{ amount: number; when?: string }>();
    return `${value.amount + 1}`;
  });

  it.each([
    ['a JSON part', json({ amount: 3 })],
    ['a text that is JSON', '{"amount":3}'],
    ['JSON of a type of its own', { content_type: 'application/vnd.order+json', content: '{"amount":3}' }],
  ])('has the type of its schema, from %s', async (_, answer) => {
    expect((await runAgent(order, 'go', { answers: [answer] })).text).toBe('4');
  });

  it('is the same in each life of a durable run', async () => {
    await cutEverywhere(order, 'go', { answers: ['{"amount":3}'] });
  });

  it('comes to a subscriber as well, and is no field of the reply in the log', async () => {
    const asks = agent('asks', (_, context) =>
      context.await('Go?', { schema: Type.Boolean() }).pipe(
        map((reply) => {
          expectTypeOf(reply).toEqualTypeOf<AgentReply<boolean>>();
          return `${reply.value ? 'goes' : 'stays'} ${Object.keys(reply).includes('value')}`;
        }),
      ),
    );
    const { text, run } = await runAgent(asks, 'go', { answers: [true] });
    expect(text).toBe('goes false');
    expect(run.questions?.[0]?.reply).not.toHaveProperty('value');
  });

  it('is the text where that is no JSON, and unknown without a schema of TypeBox', async () => {
    const asks = agent('asks', async (_, context) => {
      const plain = await context.await('Which?');
      const other = await context.await('How?', { schema: { type: 'string' } });
      expectTypeOf(plain.value).toBeUnknown();
      expectTypeOf(other.value).toBeUnknown();
      return [`${plain.value} `, `${other.value}`];
    });
    expect((await runAgent(asks, 'go', { answers: ['large', 'soon'] })).text).toBe('large soon');
  });
});
