import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { FastifyInstance } from 'fastify';
import * as rivulet from 'rivulet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import echo from '../../agents/echo.ts';
import { type Block, blocks, inLanguage, pages, programOf } from './blocks.ts';
import { isCommand, shellOf } from './commands.ts';
import { expectOutput, runInShell } from './shell.ts';

let app: FastifyInstance;
let url: string;

const titled = (some: readonly Block[]) => some.map((block) => [block.place, block] as const);

beforeAll(async () => {
  app = await rivulet.createServer({ agents: [echo, approve] });
  url = await app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => app.close());

describe('curl in README and docs', () => {
  // Pages with commands of `rivulet` start processes: test/docs/commands.servers.ts runs those.
  const withCurl = pages.filter((page) => shellOf(page).length > 0 && !shellOf(page).some(isCommand));

  it.each(withCurl)('%s: prints what the page shows', async (page) => {
    const run = shellOf(page);
    const printed = await runInShell(run, { url });
    for (const [index, block] of run.entries()) expectOutput(block, printed[index] ?? '');
  });
});

describe('Python in README and docs', () => {
  const python = (...args: string[]) =>
    promisify(execFile)('python3', args, { env: { ...process.env, NO_PROXY: '*', no_proxy: '*' }, timeout: 200_000 });

  it.each(titled(inLanguage('python')))('%s prints what the page shows', async (_, block) => {
    const { stdout } = await python('-c', programOf(block, url));
    expectOutput(block, stdout);
  });

  it.each(titled(blocks.filter(({ language }) => language === 'python')))('%s compiles', async (_, { text }) => {
    await python('-c', 'import ast, sys; ast.parse(sys.argv[1])', text);
  });
});

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
