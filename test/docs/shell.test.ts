import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Value } from '@sinclair/typebox/value';
import type { FastifyInstance } from 'fastify';
import * as rivulet from 'rivulet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import approve from '../../agents/approve.ts';
import echo from '../../agents/echo.ts';
import { blocks, inLanguage, pages, programOf } from './blocks.ts';
import { isCommand, shellOf } from './commands.ts';
import { docsProject } from './project.ts';
import { expectOutput, runInShell } from './shell.ts';

let app: FastifyInstance;
let url: string;

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
  it.each(inLanguage('python').map((block) => [block.place, block] as const))('%s runs', async (_, block) => {
    const project = docsProject(url);
    try {
      const file = join(project.folder, 'block.py');
      writeFileSync(file, programOf(block, url));
      const env = { ...process.env, NO_PROXY: '*', no_proxy: '*' };
      const { stdout } = await promisify(execFile)('python3', [file], { env, timeout: 20_000 });
      expectOutput(block, stdout);
    } finally {
      project.remove();
    }
  });
});

describe('data in README and docs', () => {
  const schemas = new Map<string, unknown>(Object.entries(rivulet));

  it.each(inLanguage('json').map((block) => [block.place, block] as const))('%s is JSON', (_, block) => {
    const value: unknown = JSON.parse(block.text);
    const name = block.marks.get('shape');
    if (name === undefined) return;
    const schema = schemas.get(name);
    expect(isSchema(schema), `rivulet exports no schema ${name}`).toBe(true);
    if (isSchema(schema))
      expect([...Value.Errors(schema, value)].map(({ path, message }) => `${path} ${message}`)).toEqual([]);
  });

  it.each(inLanguage('http').map((block) => [block.place, block] as const))('%s has frames of events', (_, block) => {
    for (const [, data = ''] of block.text.matchAll(/^data: (.*)$/gm)) {
      expect(
        [...Value.Errors(rivulet.Event, JSON.parse(data))].map(({ path, message }) => `${path} ${message}`),
      ).toEqual([]);
    }
  });

  it.each(inLanguage('yaml').map((block) => [block.place, block] as const))('%s is YAML', (_, block) => {
    expect(parseAllDocuments(block.text).flatMap(({ errors }) => errors)).toEqual([]);
  });
});

const isSchema = (value: unknown): value is typeof rivulet.Run =>
  typeof value === 'object' && value !== null && '$id' in value;

it('every page has a block that runs', () => {
  const ran = new Set(blocks.filter(({ marks }) => !marks.has('not run')).map(({ page }) => page));
  expect(pages.filter((page) => !ran.has(page))).toEqual([]);
});
