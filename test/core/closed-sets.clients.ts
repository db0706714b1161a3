import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

/** A copy of `src` in which each closed set has a member more. */
const copy = mkdtempSync(join(tmpdir(), 'rivulet-sets-'));

function add(file: string, find: string, replace: string): void {
  const path = join(copy, 'src', file);
  const before = readFileSync(path, 'utf8');
  expect(before.split(find)).toHaveLength(2);
  writeFileSync(path, before.replace(find, replace));
}

/** What the compiler says of the copy: a file and a message each. */
function mistakes(): Promise<{ file: string; message: string }[]> {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  return new Promise((done) => {
    execFile(
      process.execPath,
      [tsc, '-p', '.', '--pretty', 'false', '--noErrorTruncation'],
      { cwd: copy },
      (_error, output) => {
        const found = output.matchAll(/^src\/([^(]+)\(.*?: error (.*)$/gm);
        done([...found].map(([, file = '', message = '']) => ({ file, message })));
      },
    );
  });
}

/** The folders in which the compiler names a member. */
const folders = (found: { file: string; message: string }[], member: string): string[] => [
  ...new Set(found.filter(({ message }) => message.includes(member)).map(({ file }) => dirname(file))),
];

describe('a closed set with one member more', { timeout: 300_000 }, () => {
  let found: { file: string; message: string }[] = [];

  beforeAll(async () => {
    cpSync(join(root, 'src'), join(copy, 'src'), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const file of ['package.json', 'tsconfig.json']) cpSync(join(root, file), join(copy, file));
    add('schema/statuses.ts', "  'awaiting',", "  'awaiting',\n  'paused',");
    const event = 'export const Event = Type.Union([';
    add('schema/event.ts', event, `${event}Type.Object({ type: Type.Literal('remark') }), `);
    const kinds = 'export type PartKind =';
    add('protocols/part-kinds.ts', kinds, `${kinds}\n  | { readonly kind: 'sticker' }`);
    found = await mistakes();
  }, 300_000);

  afterAll(() => rmSync(copy, { recursive: true, force: true }));

  it('does not compile where a status has to be known', () => {
    expect(folders(found, 'paused').toSorted()).toEqual([
      'core',
      'http/metrics',
      'playground/app',
      'protocols/a2a',
      'protocols/ag-ui',
      'protocols/ai-sdk',
      'protocols/mcp',
      'protocols/openai',
      'remote',
    ]);
  });

  it('does not compile where a type of events has to be known', () => {
    expect(folders(found, 'remark').toSorted()).toEqual([
      'cli/terminal',
      'core',
      'playground/inspector',
      'protocols/a2a',
      'protocols/ag-ui',
      'protocols/ai-sdk',
      'protocols/mcp',
      'protocols/openai',
      'remote',
    ]);
  });

  it('does not compile where a kind of parts has to be known', () => {
    expect(folders(found, 'sticker').toSorted()).toEqual([
      'protocols/ag-ui',
      'protocols/ai-sdk',
      'protocols/mcp',
      'protocols/openai',
    ]);
  });
});
