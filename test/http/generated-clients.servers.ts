import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import echo from '../../agents/echo.ts';
import { listen, type Served } from '../support/serve.ts';

const execute = promisify(execFile);
/** The workspace that has the generators, with the version of TypeScript that they need. */
const workspace = resolve(import.meta.dirname, 'clients');
const bin = (name: string): string => join(workspace, 'node_modules/.bin', name);

/** A part without a content type, a run without a mode: fields with a default are optional in requests. */
const calls: Record<string, { generate: (document: string, folder: string) => string[]; program: string }> = {
  'openapi-typescript with openapi-fetch': {
    generate: (document, folder) => [bin('openapi-typescript'), document, '--output', join(folder, 'schema.ts')],
    program: `
import createClient from 'openapi-fetch';
import type { components, paths } from './schema.js';

const client = createClient<paths>({ baseUrl: process.argv[2] ?? '' });
const body: components['schemas']['RunCreateRequest'] = { agent_name: 'echo', input: [{ parts: [{ content: 'Hi' }] }] };
const { data, error } = await client.POST('/runs', { body });
if (error !== undefined) throw new Error(error.message);
if (typeof data === 'string') throw new Error('expected a Run');
const status: 'completed' | string | undefined = data.status;
const type: string | undefined = data.output[0]?.parts[0]?.content_type;
const { data: page } = await client.GET('/runs', { params: { query: { limit: 1 } } });
const runs = typeof page === 'object' ? page.runs.length : 0;
const stream = await client.POST('/runs', { body: { ...body, mode: 'stream' }, parseAs: 'text' });
console.log(status, type, runs, String(stream.data).includes('run.completed'));
`,
  },
  '@hey-api/openapi-ts': {
    generate: (document, folder) => [bin('openapi-ts'), '--input', document, '--output', join(folder, 'client')],
    program: `
import { client } from './client/client.gen.js';
import { createRun, getRun, listRuns, type RunCreateRequest } from './client/index.js';

client.setConfig({ baseUrl: process.argv[2] ?? '', throwOnError: true });
const body: RunCreateRequest = { agent_name: 'echo', input: [{ parts: [{ content: 'Hi' }] }] };
const { data } = await createRun({ body, throwOnError: true });
if (typeof data === 'string') throw new Error('expected a Run');
const { data: run } = await getRun({ path: { run_id: data.run_id }, throwOnError: true });
const { data: page } = await listRuns({ query: { limit: 1 }, throwOnError: true });
const { data: stream } = await createRun({ body: { ...body, mode: 'stream' }, parseAs: 'text', throwOnError: true });
const runs = typeof page === 'string' ? 0 : page.runs.length;
console.log(run.status, run.output[0]?.parts[0]?.content_type, runs, String(stream).includes('run.completed'));
`,
  },
};

const tsconfig = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  },
};

describe('a client generated from /openapi.json', { timeout: 240_000 }, () => {
  let served: Served;
  let folder: string;
  beforeAll(async () => {
    served = await listen([echo, approve]);
    // Inside the workspace, whose packages the clients import.
    folder = mkdtempSync(join(workspace, 'node_modules/.generated-'));
    writeFileSync(join(folder, 'openapi.json'), await (await served.get('/openapi.json')).text());
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await served.app.close();
  });

  it.each(Object.entries(calls))('type-checks, and makes calls: %s', async (name, { generate, program }) => {
    const [command = '', ...args] = generate(join(folder, 'openapi.json'), folder);
    await execute(command, args, { cwd: workspace });
    const source = `${name.replace(/\W+/g, '-')}.ts`;
    writeFileSync(join(folder, source), program);
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...tsconfig, files: [source] }));
    const { stdout } = await execute(bin('tsc'), ['--project', folder], { cwd: folder }).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout).toBe('');
    const ran = await execute(process.execPath, ['--import', 'tsx', join(folder, source), served.url], { cwd: folder });
    expect(ran.stdout.trim()).toBe('completed text/plain 1 true');
  });
});
