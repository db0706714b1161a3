import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { newKey } from '../../src/cli/commands/keys.ts';
import { terminal } from '../../src/cli/terminal/terminal.ts';
import { parseKeyFile } from '../../src/http/auth/key-file.ts';
import { userScopes } from '../../src/http/auth/key-records.ts';
import { KeyRing } from '../../src/http/auth/key-ring.ts';
import { newFolder } from '../support/folder.ts';

const printed: string[] = [];
const noted: string[] = [];
vi.spyOn(terminal, 'print').mockImplementation((text) => void printed.push(text));
vi.spyOn(terminal, 'note').mockImplementation((text) => void noted.push(text));
afterEach(() => {
  printed.length = 0;
  noted.length = 0;
});

const options = { principal: 'alice', scope: [], agent: [] };

function fileWith(text: string | undefined): string {
  const folder = newFolder(onTestFinished);
  if (text !== undefined) writeFileSync(join(folder, 'keys.yaml'), text);
  return join(folder, 'keys.yaml');
}

it('prints a key, alone on stdout, and the record that a server needs for it', async () => {
  await newKey({
    ...options,
    scope: ['runs:read'],
    tenant: 'acme',
    agent: ['chat-*'],
    expires: '2099-01-31',
    note: 'x: y',
  });
  const [key = ''] = printed;
  expect(printed).toHaveLength(1);
  const record = noted.at(-1) ?? '';
  expect(record).not.toContain(key.slice(13));
  const ring = new KeyRing();
  ring.replace(parseKeyFile(record));
  expect(ring.verify(key)).toEqual({
    id: 'alice',
    kind: 'key',
    tenant: 'acme',
    scopes: ['runs:read'],
    agents: ['chat-*'],
  });
  expect(parseKeyFile(record)).toMatchObject([{ expires_at: '2099-01-31T00:00:00Z', note: 'x: y' }]);
});

it.each([
  ['that does not exist', undefined],
  ['with a comment and no line end', '# The keys of acme'],
])('adds the record to a file %s, which stays valid', async (_name, text) => {
  const file = fileWith(text);
  for (const principal of ['alice', 'bob']) await newKey({ ...options, principal, file });
  const records = parseKeyFile(readFileSync(file, 'utf8'));
  expect(records).toMatchObject([
    { principal: 'alice', scopes: userScopes },
    { principal: 'bob', scopes: userScopes },
  ]);
  expect(readFileSync(file, 'utf8')).toContain(text ?? '');
  if (text === undefined) expect(statSync(file).mode & 0o077).toBe(0);
  expect(noted.join()).not.toContain('sha256');
});

it.each([
  ['a list in brackets', '[]', /expected a YAML list with a "-"/],
  ['no list', 'keys: none', /expected array/],
])('leaves a file alone that has %s', async (_name, text, problem) => {
  const file = fileWith(text);
  await expect(newKey({ ...options, file })).rejects.toThrow(problem);
  expect(readFileSync(file, 'utf8')).toBe(text);
  expect(printed).toEqual([]);
});

it('refuses a scope with a space, a time that is none, and one that is over', async () => {
  await expect(newKey({ ...options, scope: ['runs: read'] })).rejects.toThrow(/scopes\[0\]: expected a scope/);
  await expect(newKey({ ...options, expires: 'soon' })).rejects.toThrow('--expires: expected a date or time to come');
  await expect(newKey({ ...options, expires: '2020-01-01' })).rejects.toThrow('got "2020-01-01"');
});
