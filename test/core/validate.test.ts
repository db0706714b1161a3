import { Type } from '@sinclair/typebox';
import { describe, expect, it } from 'vitest';
import { covers } from '../../src/core/media-types.ts';
import { compile } from '../../src/core/validate.ts';
import * as agentSchemas from '../../src/schema/agent.ts';
import * as apiSchemas from '../../src/schema/api.ts';
import { MessagePartInput } from '../../src/schema/message.ts';

const check = compile(apiSchemas.RunCreateRequest);
const message = (more: object): object => ({ parts: [{ content: 'a', ...more }] });
const request = (more: object = {}): unknown => ({ agent_name: 'echo', input: [message({})], ...more });

describe('validation', () => {
  it.each([
    ['a missing field', { agent_name: undefined }, 'agent_name: is required.'],
    ['a wrong type', { agent_name: 5 }, 'agent_name: expected string, got 5.'],
    ['a text in place of a list', { input: 'a secret' }, 'input: expected array, got string.'],
    ['a list in place of an object', { input: [[]] }, 'input[0]: expected object, got array.'],
    ['too few items', { input: [] }, 'input: expected array length to be greater or equal to 1.'],
    ['a deep field', { input: [{ parts: [{ content: 5 }] }] }, 'input[0].parts[0].content: expected string, got 5.'],
    ['a bad literal', { mode: 'later' }, 'mode: expected one of sync, async, stream, got "later".'],
    [
      'an unknown encoding',
      { input: [message({ content_encoding: 'hex' })] },
      'input[0].parts[0].content_encoding: expected one of plain, base64, got "hex".',
    ],
    [
      'a kind of metadata that is none',
      { input: [message({ metadata: { kind: 'joke' } })] },
      'input[0].parts[0].metadata: expected one of the kinds citation, trajectory.',
    ],
    [
      'a field inside metadata',
      { input: [message({ metadata: { kind: 'citation', start_index: 'x' } })] },
      'input[0].parts[0].metadata.start_index: expected integer, got string.',
    ],
    [
      'a bad role',
      { input: [{ role: 'boss', parts: [] }] },
      'input[0].role: expected user, agent or agent/{name}, got "boss".',
    ],
    ['a bad uuid', { session_id: 'abc' }, /^session_id: expected a UUID, such as [0-9a-f-]{36}, got "abc"\.$/],
    [
      'a relative URL',
      { input: [message({ content: undefined, content_url: '/a' })] },
      'input[0].parts[0].content_url: expected an absolute URI, such as https://example.com/a, got "/a".',
    ],
    ['a long text', { session_id: 'x'.repeat(100) }, `got "${'x'.repeat(59)}…".`],
  ])('names the field: %s', (_, more, text) => {
    const given = JSON.parse(JSON.stringify(request(more)));
    expect(() => check(given)).toThrow(text);
  });

  it.each([
    [true, 'id: expected string or integer or null, got true.'],
    [1.5, 'id: expected string or integer or null, got 1.5.'],
    [{}, 'id: expected string or integer or null, got object.'],
    ['too long', 'id: expected string length less or equal to 3.'],
  ])('names the types of a union of types: %j', (value, text) => {
    const id = Type.Union([Type.String({ maxLength: 3 }), Type.Integer(), Type.Null()]);
    expect(() => compile(id, 'id')(value)).toThrow(text);
  });

  it('names what a list lacks where a text or a list is expected', () => {
    const input = Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]);
    expect(() => compile(input, 'input')([])).toThrow('input: expected array length to be greater or equal to 1.');
    expect(() => compile(input, 'input')(5)).toThrow('input: expected string or array, got 5.');
  });

  it.each([
    [{ type: 'image', url: 7 }, 'part.url: expected string, got 7.'],
    [{ type: 'image' }, 'part.url: is required.'],
    [{ type: 'smell', url: 'x' }, 'part: expected one of the kinds image, audio, text.'],
    [{ url: 'x' }, 'part.text: is required.'],
    [{ type: null, text: { deep: 1 } }, 'part.text: expected string, got object.'],
  ])('names the field of the variant that an object says it is: %j', (value, text) => {
    const part = Type.Union([
      Type.Object({ type: Type.Literal('image'), url: Type.String() }),
      Type.Object({ type: Type.Literal('audio'), audio: Type.Object({ data: Type.String() }) }),
      Type.Object({ type: Type.Optional(Type.Literal('text')), text: Type.String() }),
    ]);
    expect(() => compile(part, 'part')(value)).toThrow(text);
  });

  it('says in words what each pattern expects, never as a regular expression', () => {
    const unexplained: unknown[] = [];
    const walk = (schema: unknown): void => {
      if (typeof schema !== 'object' || schema === null) return;
      if ('pattern' in schema && !('description' in schema)) unexplained.push(schema);
      for (const inner of Object.values(schema)) walk(inner);
    };
    walk({ ...agentSchemas, ...apiSchemas });
    expect(unexplained).toEqual([]);
    expect(() => compile(agentSchemas.AgentName, 'name')('My Agent')).toThrow(
      'name: expected a DNS label: 1 to 63 lower-case letters, digits and hyphens, with no hyphen at its ends, got "My Agent".',
    );
  });

  it('treats null as an absent optional field, at any depth, and drops it', () => {
    const given = {
      agent_name: 'echo',
      session_id: null,
      session: null,
      mode: null,
      input: [
        {
          role: null,
          created_at: null,
          completed_at: null,
          parts: [
            { name: null, content: 'a', content_url: null, metadata: { kind: 'citation', url: null, title: 'x' } },
          ],
        },
      ],
    };
    expect(check(given)).toEqual({
      agent_name: 'echo',
      input: [{ parts: [{ content: 'a', metadata: { kind: 'citation', title: 'x' } }] }],
    });
  });

  it('keeps null where the object is free-form', () => {
    const part = { content: 'a', extra: null, name: null, metadata: { kind: 'trajectory', tool_input: { a: null } } };
    expect(compile(MessagePartInput)(part)).toEqual({
      content: 'a',
      extra: null,
      metadata: { kind: 'trajectory', tool_input: { a: null } },
    });
  });

  it('refuses null for a required field', () => {
    expect(() => check({ agent_name: null, input: [] })).toThrow('agent_name: expected string, got null.');
  });
});

describe('a range of media types', () => {
  it.each([
    ['*/*', 'image/png', true],
    ['*', 'image/png', true],
    ['image/*', 'image/png', true],
    ['image/*', 'imagery/png', false],
    ['text/plain', 'TEXT/PLAIN; charset=utf-8', true],
    ['text/plain', 'text/html', false],
    ['text/plain; q=1', 'text/plain', true],
  ])('%s covers %s: %s', (range, type, covered) => {
    expect(covers(range, type)).toBe(covered);
  });
});
