import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { AgentError, errorOf, errorTable, fail } from '../../src/core/errors.ts';

describe('the table of errors', () => {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');

  it.each(Object.entries(errorTable))('documents %s with its status and code', (name, { status, code }) => {
    const row = page.split('\n').find((line) => line.includes(`\`${name}\``));
    expect(row).toBeDefined();
    expect(row).toContain(`\`${code}\``);
    if (/\| \d{3} \|/.test(row ?? '')) expect(row).toContain(`| ${status} |`);
  });

  it('documents no error that there is not', () => {
    const named = [...page.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, names = '']) => names.match(/\w+/g) ?? []);
    expect(named.filter((name) => !(name in errorTable))).toEqual([]);
  });

  it('makes errors that know their row and say only code and message', () => {
    const error = fail('run_unknown', 'r1');
    expect(error).toMatchObject({
      kind: 'run_unknown',
      status: 404,
      code: 'not_found',
      message: 'There is no run r1.',
    });
    expect(JSON.parse(JSON.stringify(error))).toEqual({ code: 'not_found', message: 'There is no run r1.' });
  });
});

describe('what a run says of an agent’s error', () => {
  const ring: { self?: unknown } = {};
  ring.self = ring;
  it.each<[string, unknown, object]>([
    [
      'an AgentError',
      new AgentError('quota', 'used up', { left: 0 }),
      { code: 'quota', message: 'used up', data: { left: 0 } },
    ],
    [
      'an AgentError of another copy',
      Object.assign(new Error('m'), { name: 'AgentError', code: 'c' }),
      { code: 'c', message: 'm' },
    ],
    [
      'an error of Node, whose code is nobody’s business',
      Object.assign(new Error('m'), { code: 'ENOENT' }),
      { code: 'server_error', message: 'm' },
    ],
    ['an error without a message', new TypeError(), { code: 'server_error', message: 'TypeError' }],
    ['a string', 'text', { code: 'server_error', message: 'text' }],
    ['nothing', undefined, { code: 'server_error', message: 'The agent threw something that is no Error.' }],
    ['data that JSON cannot say', new AgentError('c', 'm', ring), { code: 'c', message: 'm', data: '[object Object]' }],
  ])('keeps what it may: %s', (_, thrown, said) => {
    expect(errorOf(thrown)).toEqual(said);
  });
});
