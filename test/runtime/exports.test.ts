import { readFileSync } from 'node:fs';
import { createRuntime, type createServer, type Rivulet, type Runtime } from 'rivulet';
import { type Client, type Rivulet as ClientRivulet, createClient } from 'rivulet/client';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { report, reportFile, unexported } from './api-report.ts';

describe('what the package exports', () => {
  it('is what the report says; after a change on purpose, `npm run api` renews it', () => {
    expect(report()).toBe(readFileSync(reportFile, 'utf8'));
  });

  it('has every type that an option or a method mentions', () => {
    expect(unexported()).toEqual([]);
  });

  it('is one interface for a client and a runtime', () => {
    expectTypeOf<ClientRivulet>().toEqualTypeOf<Rivulet>();
    expectTypeOf(createClient).returns.toExtend<Rivulet>();
    expectTypeOf(createRuntime).returns.resolves.toExtend<Rivulet>();
    expectTypeOf<Omit<Client, keyof Rivulet>>().toEqualTypeOf<Record<never, never>>();
    expectTypeOf<Exclude<keyof Runtime, keyof Rivulet>>().toEqualTypeOf<'as' | 'close' | typeof Symbol.asyncDispose>();
  });

  it('lets a server be given agents or a runtime, and not both', () => {
    type Options = Parameters<typeof createServer>[0];
    expectTypeOf<{ agents: [] }>().toExtend<Options>();
    expectTypeOf<{ runtime: Runtime; port?: never }>().toExtend<Options>();
    expectTypeOf<{ runtime: Runtime; agents: [] }>().not.toExtend<Options>();
    expectTypeOf<{ runtime: Runtime; store: 'memory:' }>().not.toExtend<Options>();
  });
});
