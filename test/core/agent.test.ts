import { of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentFunction, type AgentOptions, defineAgent } from '../../src/core/agent.ts';

const optionsOf = (options: AgentOptions) =>
  defineAgent({ name: 'a', description: 'An agent.' }, () => 'x', options).options;

describe('on_disconnect of an agent', () => {
  it('has a grace in milliseconds, and keeps the forms of the header', () => {
    expect(optionsOf({ on_disconnect: { grace: 1_500 } }).on_disconnect).toBe('grace=1.5');
    expect(optionsOf({ on_disconnect: { grace: 0 } }).on_disconnect).toBe('grace=0');
    expect(optionsOf({ on_disconnect: 'grace=2' }).on_disconnect).toBe('grace=2');
    expect(optionsOf({ durable: true })).toEqual({ durable: true });
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('refuses a grace of %d', (grace) => {
    expect(() => optionsOf({ on_disconnect: { grace } })).toThrow(
      `options.on_disconnect.grace: expected 0 to 999999999 milliseconds, got ${grace}.`,
    );
  });
});

// Checked by `npm run check:types`.
describe('the types of a function', () => {
  const manifest = { name: 'a', description: 'An agent.' };
  const written: AgentFunction = () => 'x';

  it('take each result that is output, and keep its literals', () => {
    const right = [
      defineAgent(manifest, written),
      defineAgent(manifest, () => {
        throw new Error('later');
      }),
      defineAgent(manifest, (input, context) => context.call('b', input)),
      defineAgent(manifest, (input) =>
        input.length > 0 ? of('x') : ['y', { content: '', content_encoding: 'plain' }],
      ),
      defineAgent(manifest, (input) => of({ type: 'generic', generic: { messages: input.length } })),
      defineAgent(manifest, async (input) => ({ content: String(input.length), content_encoding: 'plain' })),
      defineAgent(manifest, async (input) => (input.length > 0 ? { parts: [], role: 'agent' } : ['x'])),
      defineAgent(manifest, function* (input) {
        yield { content: String(input.length), content_encoding: 'plain' };
      }),
      defineAgent(manifest, async function* (input, context) {
        yield* context.tool('count', {}, () => input.length);
        yield { type: 'generic', generic: { messages: input.length } };
      }),
    ];
    expect(right).toHaveLength(9);
  });

  it('refuse any other', () => {
    const wrong = [
      // @ts-expect-error no output
      defineAgent(manifest, () => 1),
      // @ts-expect-error no result
      defineAgent(manifest, () => {}),
      // @ts-expect-error not known to be output
      defineAgent(manifest, (): unknown => 'x'),
      // @ts-expect-error one output, which belongs into an array or of(…)
      defineAgent(manifest, () => ({ content: 'x' })),
      // @ts-expect-error no output
      defineAgent(manifest, (input) => of(input.length)),
      // @ts-expect-error no output among others
      defineAgent(manifest, async (input) => (input.length > 0 ? 'x' : undefined)),
      // @ts-expect-error a number as the content
      defineAgent(manifest, function* (input) {
        yield { content: input.length };
      }),
      // @ts-expect-error another parameter
      defineAgent(manifest, (input: string) => input),
    ];
    expect(wrong).toHaveLength(8);
  });
});
