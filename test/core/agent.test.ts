import { describe, expect, it } from 'vitest';
import { type AgentOptions, defineAgent } from '../../src/core/agent.ts';

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
