import { Ajv } from 'ajv';
import { map } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { type AgentFunction, type AwaitOptions, defineAgent } from '../../src/core/agent.ts';
import { RivuletError } from '../../src/core/errors.ts';
import { receiveReply } from '../../src/engine/execution/reply-schema.ts';
import type { AwaitRequest, Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { begin, begun, runOf, toTheEnd, whole } from '../support/lives.ts';
import { processorTime } from '../support/processor-time.ts';
import { textOf } from '../support/run-output.ts';

const now = '2026-01-01T00:00:00.000Z';
const message = { role: 'agent/asks', parts: [{ content: '?' }], created_at: now, completed_at: now };
const check = (schema: Record<string, unknown>, content: string): void => {
  const request: AwaitRequest = { type: 'message', message, id: '1', schema };
  receiveReply(request, { type: 'message', message: { parts: [{ content }] } }, 'api', now);
};

function problemsOf(work: () => void): unknown {
  try {
    work();
  } catch (error) {
    if (error instanceof RivuletError) return error.toJSON().data?.problems;
  }
  return undefined;
}

const object = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
const drafts: [string, Record<string, unknown>, string, string][] = [
  ['draft 4', { type: 'number', minimum: 1, exclusiveMinimum: true, id: 'http://a/b' }, '2', '1'],
  ['draft 6', { type: 'number', exclusiveMinimum: 1, $id: 'http://a/b' }, '2', '1'],
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  ['draft 7', { if: { type: 'number' }, then: { minimum: 2 }, $id: 'http://a/b' }, '2', '1'],
  ['2019-09', { ...object, unevaluatedProperties: false, $id: 'http://a/b' }, '{"amount":1}', '{"amount":1,"b":2}'],
  ['2020-12', { prefixItems: [{ type: 'string' }], $id: 'http://a/b' }, '["a"]', '[1]'],
];
const dialect: Record<string, string> = {
  'draft 4': 'http://json-schema.org/draft-04/schema#',
  'draft 6': 'http://json-schema.org/draft-06/schema#',
  'draft 7': 'http://json-schema.org/draft-07/schema#',
  '2019-09': 'https://json-schema.org/draft/2019-09/schema',
  '2020-12': 'https://json-schema.org/draft/2020-12/schema',
};

describe('a schema for a reply', () => {
  it.each(drafts)('may be of %s, with an id', (draft, schema, good, bad) => {
    const full = { $schema: dialect[draft], ...schema };
    expect(() => check(full, good)).not.toThrow();
    expect(() => check(full, bad)).toThrowError(expect.objectContaining({ kind: 'validation_failed' }));
  });

  it.each(drafts)('may name %s by http or https', (draft, schema, good, bad) => {
    const [http, https] = ['http', 'https'].map((scheme) => dialect[draft]?.replace(/^https?/, scheme));
    for (const $schema of [http, https]) {
      expect(() => check({ $schema, ...schema }, good)).not.toThrow();
      expect(() => check({ $schema, ...schema }, bad)).toThrow();
    }
  });

  it.each(drafts)('may refer to itself as #, in %s', (draft) => {
    const tree = (type: string) => ({
      $schema: dialect[draft],
      type: 'object',
      properties: { name: { type }, of: { type: 'array', items: { $ref: '#' } } },
    });
    // One after the other, so that # is not the schema that was compiled before.
    for (const [type, good, bad] of [
      ['string', '"a"', '1'],
      ['number', '1', '"a"'],
    ] as const) {
      expect(() => check(tree(type), `{"of":[{"name":${good},"of":[{"name":${good}}]}]}`)).not.toThrow();
      expect(() => check(tree(type), `{"of":[{"name":${good},"of":[{"name":${bad}}]}]}`)).toThrow(`must be ${type}`);
    }
  });

  it('refuses a reply that is nested too deeply for a schema that refers to itself', () => {
    const lists = { type: 'array', items: { $ref: '#' } };
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    expect(() => check(lists, deep)).toThrow('is nested too deeply to check');
    expect(() => check(lists, '[[]]')).not.toThrow();
  });

  it('may have the id of another schema', () => {
    check({ $id: 'http://same/id', type: 'number' }, '1');
    expect(() => check({ $id: 'http://same/id', type: 'object' }, '1')).toThrow('must be object');
  });

  it('lets a reply leave out a property that each object inherits', () => {
    const schema = { type: 'object', properties: { constructor: { type: 'string' }, toString: { type: 'boolean' } } };
    expect(() => check(schema, '{}')).not.toThrow();
    expect(() => check({ ...schema, required: ['toString'] }, '{}')).toThrow("must have required property 'toString'");
  });

  it.each(['1e400', '-1e400'])('takes %s, which no JSON has afterwards, for no number', (content) => {
    for (const type of ['number', 'integer']) expect(() => check({ type }, content)).toThrow(`must be ${type}`);
    expect(() => check({ type: 'number', maximum: 10 }, content)).toThrow();
  });

  it('checks formats', () => {
    expect(() => check({ type: 'string', format: 'email' }, 'no-address')).toThrow('must match format "email"');
    expect(() => check({ type: 'string', format: 'email' }, 'a@example.org')).not.toThrow();
  });

  it('reports all problems of a refused reply at once, each with its field', () => {
    const schema = {
      type: 'object',
      required: ['a/b', 'mail'],
      properties: { size: { enum: ['s', 'm'] }, mail: { type: 'string', format: 'email' }, days: { minimum: 1 } },
    };
    const problems = [
      { path: '/a~1b', text: 'is required' },
      { path: '/size', text: 'must be one of s, m' },
      { path: '/mail', text: 'must match format "email"' },
      { path: '/days', text: 'must be >= 1' },
    ];
    const refusal = problemsOf(() => check(schema, '{"size":"l","mail":"no-address","days":0}'));
    expect(refusal).toEqual(expect.arrayContaining(problems));
    expect(refusal).toHaveLength(problems.length);
  });

  it('reports only the first problem of a long reply, because each costs memory', () => {
    const many = JSON.stringify(Array.from({ length: 10_000 }, () => 1));
    expect(problemsOf(() => check({ items: { type: 'string' } }, many))).toHaveLength(1);
  });

  it('does not keep the problems of the last reply', () => {
    const compile = vi.spyOn(Ajv.prototype, 'compile');
    onTestFinished(() => void vi.restoreAllMocks());
    expect(() => check({ title: 'kept', type: 'number' }, '"a"')).toThrow('must be number');
    const validates = compile.mock.results.map(({ value }) => value);
    expect(validates).toHaveLength(2);
    for (const validate of validates) expect(validate.errors).toBeNull();
  });

  it('names the first problem of a reply all of whose problems would take too long', () => {
    const slow = { type: 'string', pattern: '^(a+)+$' };
    const schema = { type: 'object', properties: { amount: { type: 'number' }, note: slow } };
    const reply = `{"amount":"three","note":"${'a'.repeat(60)}!"}`;
    expect(problemsOf(() => check(schema, reply))).toEqual([{ path: '/amount', text: 'must be number' }]);
  });

  it('is compiled without output on the terminal, whatever keywords it has', () => {
    const words = [vi.spyOn(console, 'warn'), vi.spyOn(console, 'error'), vi.spyOn(console, 'log')];
    check({ type: 'string', format: 'unheard-of', 'x-widget': 'slider', minimum: 3 }, 'a');
    for (const word of words) expect(word).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });

  it('may differ for each run', () => {
    for (let n = 0; n < 120; n += 1) check({ $id: `http://a/${n}`, title: `${n}`, type: 'string' }, 'a');
  });

  // More schemas than are kept, and fewer of more characters.
  it.each([
    [200, ''],
    [30, 'x'.repeat(50_000)],
  ])('is compiled once while it is in use, and again after %i others', (others, description) => {
    const compile = vi.spyOn(Ajv.prototype, 'compile');
    onTestFinished(() => void vi.restoreAllMocks());
    const checkAll = (names: readonly string[]): number => {
      const before = compile.mock.calls.length;
      for (const title of names) check({ title: `${title} of ${others}`, description, type: 'string' }, 'a');
      return compile.mock.calls.length - before;
    };
    const names = Array.from({ length: others }, (_, n) => `schema ${n}`);
    expect(checkAll(['mine', 'mine', 'mine'])).toBe(1);
    expect(checkAll(names.flatMap((name) => [name, 'mine']))).toBe(others);
    expect(checkAll(names)).toBe(others);
    expect(checkAll(['mine', 'mine'])).toBe(1);
  });

  it('with a pattern that backtracks endlessly blocks the event loop only briefly', () => {
    const schema = { type: 'string', pattern: '^(a+)+$' };
    const started = processorTime();
    expect(() => check(schema, `${'a'.repeat(60)}!`)).toThrow('takes more than 250 ms to check');
    // Without the limit, it would take longer than the age of the universe.
    expect(processorTime() - started).toBeLessThan(5_000);
    expect(() => check(schema, 'aaa')).not.toThrow();
  });

  it('refuses a reply of more than a million characters without a check', () => {
    expect(() => check({ type: 'string' }, 'a'.repeat(1024 * 1024 + 1))).toThrow('is longer than 1048576 characters');
  });
});

const asks = (run: AgentFunction) => defineAgent({ name: 'asks', description: 'Asks.' }, run);
const asked = (options: AwaitOptions, request: unknown = '?') =>
  asks((_, context) => context.await(request as string, options) as never);

describe('a schema that zod has made', () => {
  const Account = z.object({
    id: z.uuid(),
    get parts() {
      return z.array(Account).optional();
    },
  });
  const Order = z.object({
    amount: z.int().positive(),
    mail: z.email(),
    at: z.iso.datetime(),
    size: z.enum(['s', 'm']).optional(),
    place: z.tuple([z.number(), z.number()]).optional(),
    note: z.string().max(5).nullable(),
    account: Account,
    how: z.discriminatedUnion('by', [
      z.object({ by: z.literal('card'), digits: z.string().regex(/^\d{4}$/) }),
      z.object({ by: z.literal('cash') }),
    ]),
  });
  const id = '6f1f0d3e-3c57-4c5e-9d3b-0a5c6b7e8f90';
  const good = {
    amount: 2,
    mail: 'a@example.org',
    at: '2026-01-01T00:00:00Z',
    place: [1, 2],
    note: null,
    account: { id, parts: [{ id }] },
    how: { by: 'card', digits: '1234' },
  };
  const bad = {
    'a value of another type': { amount: '2' },
    'a value that is too small': { amount: 0 },
    'no address': { mail: 'a at example.org' },
    'no time': { at: 'tomorrow' },
    'none of the values': { size: 'xl' },
    'a list that is too long': { place: [1, 2, 3] },
    'a text that is too long': { note: 'longer' },
    'a bad value within itself': { account: { id, parts: [{ id: 'none' }] } },
    'no alternative': { how: { by: 'card', digits: '12' } },
  };
  const reply = (value: unknown) => ({ message: { parts: [{ content: JSON.stringify(value) }] } });

  it('lets the run await what zod takes, and nothing else', async () => {
    const agent = asks((_, context) =>
      context
        .await('?', { schema: z.toJSONSchema(Order) })
        .pipe(map(({ message }) => `${Order.parse(JSON.parse(message.parts[0]?.content ?? '')).amount} taken`)),
    );
    const engine = await engineOf([agent]);
    const run_id = await begun(engine, 'asks');
    for (const [what, change] of Object.entries(bad)) {
      const value = { ...good, ...change };
      expect(Order.safeParse(value).success, what).toBe(false);
      await expect(engine.resume(run_id, reply(value)), what).rejects.toMatchObject({ kind: 'validation_failed' });
    }
    // zod lets objects have more properties, and takes them away; its schema does not.
    await expect(engine.resume(run_id, reply({ ...good, more: 1 }))).rejects.toMatchObject({
      kind: 'validation_failed',
    });
    await engine.resume(run_id, reply(good));
    const { run } = await toTheEnd(engine, run_id);
    expect([run.status, textOf(run)]).toEqual(['completed', '2 taken']);
  });
});

describe('an invalid await', () => {
  const cases: [string, AwaitOptions, unknown, string][] = [
    ['has a schema of an unknown type', { schema: { type: 'nothing' } }, '?', 'schema'],
    ['has a schema of an unknown dialect', { schema: { $schema: 'http://example.org/mine' } }, '?', 'unknown $schema'],
    ['has a dialect that objects inherit', { schema: { $schema: 'constructor' } }, '?', 'unknown $schema'],
    ['has a pattern that is none', { schema: { pattern: '(' } }, '?', 'Invalid regular expression'],
    ['has an asynchronous schema', { schema: { $async: true, type: 'string' } }, '?', '$async'],
    ['expires at once', { expiresIn: 0 }, '?', 'milliseconds, got 0'],
    ['has expired', { expiresIn: -1 }, '?', 'milliseconds, got -1'],
    ['expires at no time', { expiresIn: Number.NaN }, '?', 'milliseconds, got NaN'],
    ['expires in a time that is no number', { expiresIn: '5' as never }, '?', 'milliseconds, got string'],
    ['has no message', {}, { type: 'message' }, 'message'],
    ['has a message that JSON cannot express', {}, { role: 'agent', parts: [{ content: 'a', n: 1n }] }, 'bigint'],
    ['expires at a time that is none', {}, { type: 'message', message, expires_at: 'soon' }, 'expires_at'],
  ];
  it.each(cases)('that %s is an error of the agent', async (_, options, request, problem) => {
    const { run } = await whole([asked(options, request)]);
    expect(run.status).toBe('failed');
    expect(run.error?.message).toContain('Agent asks made an invalid await request');
    expect(run.error?.message).toContain(problem);
  });

  it('is an error that the agent may catch', async () => {
    const { run } = await whole([
      asks(
        async (_, context) =>
          new Promise<string>((resolve) => {
            context.await('?', { schema: { type: 'nothing' } }).subscribe({ error: () => resolve('went on') });
          }),
      ),
    ]);
    expect(run.output[0]?.parts[0]?.content).toBe('went on');
  });
});

describe('the expiry of an await', () => {
  const awaitingOf = async (options: AwaitOptions, request: unknown): Promise<Run> => {
    const engine = await startEngine([asked(options, request)], new MemoryStore());
    const run_id = await begin(engine, 'asks');
    for (;;) {
      const run = await runOf(engine, run_id);
      if (run.status !== 'awaiting') {
        await new Promise(setImmediate);
        continue;
      }
      await engine.cancel(run_id);
      await toTheEnd(engine, run_id);
      await engine.stop();
      return run;
    }
  };

  it('is that of the request', async () => {
    const expires_at = '2099-01-01T00:00:00.000Z';
    const { await_request } = await awaitingOf({}, { type: 'message', message, expires_at });
    expect(await_request?.expires_at).toBe(expires_at);
  });

  it('is that of the options if both are given', async () => {
    const expires_at = '2099-01-01T00:00:00.000Z';
    const { await_request } = await awaitingOf({ expiresIn: 100_000 }, { type: 'message', message, expires_at });
    expect(Date.parse(await_request?.expires_at ?? '')).toBeLessThan(Date.now() + 200_000);
  });
});
