import { describe, expect, it } from 'vitest';
import { file } from '../../src/core/file.ts';
import {
  citation,
  json,
  progress,
  questionText,
  sharedState,
  stateChangeOf,
  statePatch,
  textOf,
  trajectory,
} from '../../src/core/parts.ts';

const message = (...contents: string[]) => ({ role: 'user', parts: contents.map((content) => ({ content })) });

it('questionText has a blank line around each part that is no plain text', () => {
  const parts = [
    { content: 'May ' },
    { content: 'I?' },
    json({ a: 1 }),
    { content: '' },
    file('a.txt', 'b'),
    { content: 'c' },
  ];
  const ask = (...asked: typeof parts) => questionText({ message: { role: 'agent', parts: asked } });
  expect(ask(...parts)).toBe('May I?\n\n{"a":1}\n\nb\n\nc');
  expect(ask(json([]))).toBe('[]');
});

describe('textOf', () => {
  it.each<[string, Parameters<typeof textOf>[0], string]>([
    ['a text', 'hi', 'hi'],
    ['a part', { content: 'hi' }, 'hi'],
    ['a part without content', { content_url: 'https://example.com/a' }, ''],
    ['a part of JSON', json({ a: 1 }), '{"a":1}'],
    ['a text in base64', { content: 'aMOp', content_encoding: 'base64' }, 'hé'],
    ['a picture', { content_type: 'image/png', content: 'iVBORw==', content_encoding: 'base64' }, ''],
    ['a step', { ...trajectory({ message: 'Looked.' }), content: 'Looking' }, ''],
    ['a generic event', progress('Reading'), ''],
    ['a message', message('one ', 'two'), 'one two'],
    ['messages', [message('one'), message(), message('two')], 'one\n\ntwo'],
    ['no message', [], ''],
    ['tokens', ['a', 'b'], 'ab'],
  ])('is the text of %s', (_, said, text) => {
    expect(textOf(said)).toBe(text);
  });

  it('names what came instead of a message', () => {
    const missing: unknown = undefined;
    expect(() => textOf(missing as string)).toThrow(
      'textOf expects a message, a part, a text or a list of these, got undefined',
    );
  });

  it('maps a list of messages', () => {
    expect([message('one'), message('two')].map(textOf)).toEqual(['one', 'two']);
  });
});

describe('a maker of parts', () => {
  it('makes citations and trajectories with the metadata that clients know', () => {
    expect(citation({ url: 'https://example.com', start_index: 0, end_index: 4 })).toEqual({
      content_type: 'text/plain',
      metadata: { kind: 'citation', url: 'https://example.com', start_index: 0, end_index: 4 },
    });
    expect(trajectory({ tool_name: 'add', tool_input: { a: 1 }, tool_output: { sum: 1 } })).toEqual({
      metadata: { kind: 'trajectory', tool_name: 'add', tool_input: { a: 1 }, tool_output: { sum: 1 } },
    });
  });

  it('makes JSON, with a name where it is an artifact', () => {
    expect(json([1])).toEqual({ content_type: 'application/json', content: '[1]' });
    expect(json(null, 'a.json')).toEqual({ name: 'a.json', content_type: 'application/json', content: 'null' });
  });

  it('makes events of the shared state, which are told from other events of the same kind', () => {
    const patch = [{ op: 'add', path: '/a', value: 1 } as const];
    expect(stateChangeOf(sharedState({ a: 1 }).generic)).toEqual({ state: { a: 1 } });
    expect(stateChangeOf(statePatch(patch).generic)).toEqual({ patch });
    const wrong = ['add', { op: 'add', path: '/a' }, { op: 'set', path: '/a', value: 1 }, { op: 'remove', path: 'a' }];
    for (const one of [...wrong, { op: 'move', path: '/a' }, { op: 'remove', path: '/~2' }]) {
      expect(stateChangeOf({ kind: 'state', patch: [...patch, one] })).toBeUndefined();
    }
    expect(stateChangeOf({ kind: 'state' })).toBeUndefined();
    expect(stateChangeOf({ kind: 'own', state: 1 })).toBeUndefined();
  });

  it('makes events of progress', () => {
    expect(progress('Reading')).toEqual({ type: 'generic', generic: { kind: 'progress', message: 'Reading' } });
    expect(progress('Reading', { done: 1, total: 3 }).generic).toEqual({
      kind: 'progress',
      message: 'Reading',
      done: 1,
      total: 3,
    });
  });
});

describe('a file', () => {
  it('of UTF-8 bytes is text, byte for byte', () => {
    const text = '\uFEFFhé 川\n';
    expect(file('a.md', new TextEncoder().encode(text), 'text/markdown')).toEqual({
      name: 'a.md',
      content_type: 'text/markdown',
      content: text,
    });
    expect(file('a.txt', 'hi')).toEqual({ name: 'a.txt', content_type: 'text/plain', content: 'hi' });
  });

  it.each([
    ['sales.csv', 'text/csv'],
    ['SALES.CSV', 'text/csv'],
    ['plan.md', 'text/markdown'],
    ['data.json', 'application/json'],
    ['page.html', 'text/html'],
    ['chart.svg', 'image/svg+xml'],
    ['agent.ts', 'text/plain'],
    ['Makefile', 'text/plain'],
  ])('of text that is called %s has the type %s', (name, content_type) => {
    expect(file(name, 'x')).toEqual({ name, content_type, content: 'x' });
    expect(file(name, new TextEncoder().encode('x'))).toMatchObject({ content_type, content: 'x' });
  });

  it('of bytes has the type of its name, and any other that is given', () => {
    const bytes = Uint8Array.of(0xff);
    expect(file('chart.png', bytes)).toMatchObject({ content_type: 'image/png', content_encoding: 'base64' });
    expect(file('report.pdf', bytes)).toMatchObject({ content_type: 'application/pdf' });
    expect(file('chart.png', bytes, 'image/webp')).toMatchObject({ content_type: 'image/webp' });
    expect(file('sales.csv', 'x', 'text/plain')).toMatchObject({ content_type: 'text/plain' });
  });

  it.each([
    ['bytes that are no UTF-8', [0xff, 0xfe, 0x41]],
    ['a cut character', [0xc3]],
    ['a NUL', [0x41, 0x00]],
    ['many bytes', Array.from({ length: 100_000 }, (_, n) => n % 256)],
  ])('of %s is base64', (_, list) => {
    const bytes = Uint8Array.from(list);
    expect(file('a.unknown', bytes)).toEqual({
      name: 'a.unknown',
      content_type: 'application/octet-stream',
      content_encoding: 'base64',
      content: Buffer.from(bytes).toString('base64'),
    });
  });
});
