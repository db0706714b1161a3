import fc from 'fast-check';
import { firstValueFrom, from } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AgentOutput } from '../../src/core/agent.ts';
import { RivuletError } from '../../src/core/errors.ts';
import { fold } from '../../src/core/fold.ts';
import { closeMessage, collected, createToEvents } from '../../src/core/to-events.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Run } from '../../src/schema/run.ts';

const now = (): string => '2026-01-01T00:00:00.000Z';
const toEvents = createToEvents(now);

function eventsFor(...outputs: (AgentOutput | undefined)[]): Event[] {
  const run: Run = { run_id: 'r', agent_name: 'a', status: 'in-progress', output: [], created_at: now() };
  const events: Event[] = [];
  const emit = (event: Event): void => {
    events.push(structuredClone(event));
    fold(run, event);
  };
  for (const output of outputs) toEvents(run, output, emit);
  closeMessage(run, emit, now);
  return events;
}

const types = (events: Event[]): string => events.map(({ type }) => type.replace('message.', '')).join(' ');

describe('what an agent emits', () => {
  it('opens one message for loose parts, joins them, and completes it at the end', () => {
    const events = eventsFor('Hel', 'lo', { content: '<b>', content_type: 'text/html' });
    expect(types(events)).toBe('created part part part completed');
    expect(events[0]).toEqual({
      type: 'message.created',
      message: { role: 'agent/a', parts: [], created_at: now(), completed_at: null },
    });
    expect(events.at(-1)).toEqual({
      type: 'message.completed',
      message: {
        role: 'agent/a',
        parts: [
          { content_type: 'text/plain', content: 'Hello' },
          { content_type: 'text/html', content: '<b>' },
        ],
        created_at: now(),
        completed_at: now(),
      },
    });
  });

  it('completes the open message, and makes none of a message without parts', () => {
    expect(types(eventsFor('x', { role: 'agent', parts: [] }, { role: 'agent', parts: [] }, 'y'))).toBe(
      'created part completed created part completed',
    );
  });

  it('completes the open message before a whole message, which keeps its parts and times', () => {
    const whole = {
      role: 'user',
      parts: [{ content: 'a' }, { content: 'b' }],
      created_at: '2020-01-01T00:00:00.000Z',
      completed_at: '2020-01-01T00:00:01.000Z',
    };
    const events = eventsFor('x', whole, 'y');
    expect(types(events)).toBe('created part completed created part part completed created part completed');
    expect(events[6]).toEqual({
      type: 'message.completed',
      message: {
        ...whole,
        role: 'agent/a',
        parts: [
          { content_type: 'text/plain', content: 'a' },
          { content_type: 'text/plain', content: 'b' },
        ],
      },
    });
  });

  it('may be a generic event, even in the middle of a message', () => {
    const events = eventsFor('a', { type: 'generic', generic: { progress: 0.5 } }, 'b');
    expect(types(events)).toBe('created part generic part completed');
  });

  it('may be nothing', () => {
    expect(eventsFor()).toEqual([]);
    expect(eventsFor(undefined)).toEqual([]);
  });

  it('keeps the metadata of citations and trajectories, and unknown keys', () => {
    const cited = {
      metadata: { kind: 'citation' as const, start_index: 0, end_index: 5, url: 'https://a' },
      mine: [1],
    };
    expect(eventsFor(cited)[1]).toEqual({ type: 'message.part', part: { content_type: 'text/plain', ...cited } });
  });

  it('is copied: later changes of the agent’s object have no effect', () => {
    const part = { content_type: 'text/html', content: 'before' };
    const run: Run = { run_id: 'r', agent_name: 'a', status: 'in-progress', output: [], created_at: now() };
    toEvents(run, part, (event) => fold(run, event));
    part.content = 'after';
    expect(run.output[0]?.parts[0]?.content).toBe('before');
  });

  const ring: { self?: object } = {};
  ring.self = ring;
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const refuse = (): never => {
    throw new Error('not me\nnor my stack');
  };
  // A getter, so that no title shows its 2 to the 64th values.
  const shared = {
    toJSON: () => Array.from({ length: 64 }).reduce<unknown>((inner) => ({ a: inner, b: inner }), 'x'),
  };
  const whole = (more: object): object => ({ parts: [{ content: 'a' }], ...more });
  it.each<[string, unknown, string | RegExp]>([
    ['a number', 5, 'got number'],
    ['null', null, 'got null'],
    ['an array', ['a'], 'got an array'],
    ['a function', () => {}, 'got function'],
    ['an object of nothing known', { foo: 1 }, 'no field of a part or message'],
    ['content and content_url', { content: 'a', content_url: 'https://a' }, 'both content and content_url'],
    ['base64 that is none', { content: '%%%', content_encoding: 'base64' }, 'not base64'],
    ['content that is no text', { content: 5 }, 'part.content: expected string'],
    ['a message with a bad part', { role: 'agent', parts: [{ content: 5 }] }, 'message.parts[0].content'],
    ['generic that is no object', { type: 'generic', generic: 5 }, 'generic.generic: expected object'],
    ['a ring', { content: 'a', ring }, /output\.ring\.self.*: is nested deeper than 100 levels, or contains itself\.$/],
    ['a BigInt', { content: 'a', big: [1, 5n] }, 'output.big[1]: is a bigint, which JSON cannot express.'],
    ['a function', { content: () => 'a' }, 'output.content: is a function, which JSON cannot express.'],
    ['a symbol', { type: 'generic', generic: { a: Symbol('s') } }, 'output.generic.a: is a symbol'],
    ['a Date', new Date(0), 'got a Date, not text'],
    ['an object that is a text to JSON', { toJSON: () => 'text' }, 'got an object that JSON writes as text, not text'],
    ['an object that is nothing to JSON', { toJSON: () => undefined }, 'got an object that JSON writes as undefined'],
    ['a toJSON that throws', { content: 'a', more: { toJSON: refuse } }, 'output.more: cannot be read: not me.'],
    [
      'a getter that throws',
      Object.defineProperty({}, 'a', { get: refuse, enumerable: true }),
      'output.a: cannot be read: not me.',
    ],
    ['a Proxy that was revoked', revoked, 'output: cannot be read: '],
    ['what grows with each level', { content: 'a', more: shared }, 'has more than 1000000 values.'],
    [
      'a leap second',
      whole({ created_at: '2016-12-31T23:59:60Z' }),
      'message.created_at: expected an ISO 8601 date and time',
    ],
    [
      'a year out of range',
      whole({ completed_at: '9999-12-31T23:59:59-01:00' }),
      'message.completed_at: expected an ISO 8601',
    ],
    ['a time that is no text', whole({ created_at: 5 }), 'message.created_at: expected string'],
    [
      'a relative content_url',
      { content_url: 'a.png' },
      'part.content_url: expected an absolute URI, such as https://example.com/a, got "a.png"',
    ],
  ])('is refused by name where it is nonsense: %s', (_, output, problem) => {
    expect(() => eventsFor(output as AgentOutput)).toThrow(problem);
    expect(() => eventsFor(output as AgentOutput)).toThrow(/^Agent a emitted invalid output: /);
    expect(() => eventsFor(output as AgentOutput)).toThrow(RivuletError);
  });

  it('may have dates, and times of any offset, which become UTC with the same precision', () => {
    const [created] = eventsFor(
      whole({ created_at: new Date(0), completed_at: '2026-01-01T01:00:00.123456+02:00' }) as AgentOutput,
    ).filter(({ type }) => type === 'message.completed');
    expect(created).toMatchObject({
      message: { created_at: '1970-01-01T00:00:00.000Z', completed_at: '2025-12-31T23:00:00.123456Z' },
    });
  });

  it('is recorded or refused with `output_invalid`, whatever it is', () => {
    const event = fc.record(
      {
        content: fc.anything(),
        parts: fc.anything(),
        generic: fc.anything(),
        created_at: fc.anything(),
        type: fc.constantFrom('generic', 'x'),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.anything({ withBigInt: true, withNullPrototype: true }), event), (output) => {
        try {
          for (const one of eventsFor(output as AgentOutput)) expect(JSON.parse(JSON.stringify(one))).toEqual(one);
        } catch (error) {
          expect(error).toMatchObject({ kind: 'output_invalid' });
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('the awaited answer of an agent', () => {
  const end = { role: 'agent', parts: [] };
  const interrupted = { ...end, finish_reason: 'interrupted' as const };
  const answer = async (...outputs: AgentOutput[]): Promise<unknown> =>
    (await firstValueFrom(collected('a', from(outputs), now))).parts.map(({ content }) => content);

  it('has the texts of all its messages as one', async () => {
    const whole = { role: 'agent', parts: [{ content: 'Three.', content_type: 'text/plain' }] };
    expect(await answer('One. ', end, 'Two. ', whole)).toEqual(['One. Two. Three.']);
  });

  it('has no message that was interrupted', async () => {
    const cut = { ...interrupted, parts: [{ content: 'The fox' }] };
    expect(await answer('Yes. ', end, 'The cat ', interrupted, cut, 'The dog ', 'ran.')).toEqual(['Yes. The dog ran.']);
  });
});
