import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import * as rivulet from 'rivulet';
import { describe, expect, it } from 'vitest';
import { type Block, blocks, inLanguage, pages } from './blocks.ts';

const titled = (some: readonly Block[]) => some.map((block) => [block.place, block] as const);

describe('data in README and docs', () => {
  const schemas = new Map<string, unknown>(Object.entries(rivulet));
  const isSchema = (value: unknown): value is TSchema => Object(value) === value && Object.hasOwn(Object(value), '$id');

  it.each(titled(inLanguage('json')))('%s is JSON', (_, { text, marks }) => {
    const value: unknown = JSON.parse(text);
    const name = marks.get('shape');
    if (name === undefined) return;
    const schema = schemas.get(name);
    if (!isSchema(schema)) throw new Error(`rivulet exports no schema ${name}`);
    expect(problemsOf(schema, value)).toEqual([]);
  });

  it.each(titled(inLanguage('http')))('%s has frames of events', (_, { text }) => {
    const frames = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']): unknown => JSON.parse(data));
    expect(frames.flatMap((event) => problemsOf(rivulet.Event, event))).toEqual([]);
  });
});

const problemsOf = (schema: TSchema, value: unknown): string[] =>
  [...Value.Errors(schema, value)].map(({ path, message }) => `${path} ${message}`);

it('every page has a block that runs', () => {
  const ran = new Set(blocks.filter(({ marks }) => !marks.has('not run')).map(({ page }) => page));
  expect(pages.filter((page) => !ran.has(page))).toEqual([]);
});
