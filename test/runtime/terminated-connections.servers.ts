import { Client } from 'pg';
import { lastValueFrom } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { postgresPlace } from '../support/servers.ts';
import { type Moment, TerminatingProxy } from '../support/terminating-proxy.ts';

/** A commit of more than 4 MiB has a transaction of its own. */
const long = 'x'.repeat(5_000_000);
const agents = [
  agent('talk', async function* () {
    yield 'short ';
    yield long;
  }),
  agent('never', () => new Promise<never>(() => {})),
];
const limits = { lease: 1_000, pollInterval: 500, shutdownGrace: 0, chars: 0 };

const place = await postgresPlace();
const admin = new Client(place?.url);
const schemas: string[] = [];
/** Errors at which Node.js ends a process. */
const uncaught: unknown[] = [];
const onUncaught = (error: unknown): number => uncaught.push(error);

beforeAll(async () => {
  process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught);
  if (place !== undefined) await admin.connect();
});
afterAll(async () => {
  process.off('uncaughtException', onUncaught).off('unhandledRejection', onUncaught);
  for (const schema of schemas) await admin.query(`DROP SCHEMA IF EXISTS ${schema}, ${schema}_queue CASCADE`);
  await admin.end();
  await place?.remove();
});

describe.skipIf(place === undefined).each<Moment>(['answer', 'request'])(
  'a process that loses a connection at an %s',
  (moment) => {
    let proxy: TerminatingProxy;
    const name = (what: string): string => `${place?.name}_${moment}_${what}`;
    const open = (schema: string): Promise<Runtime> => {
      const url = new URL(proxy.url);
      url.searchParams.set('schema', schema);
      schemas.push(schema);
      return createRuntime({ agents, store: url.href, limits });
    };
    const talk = async (runtime: Runtime): Promise<void> => {
      expect(await lastValueFrom(runtime.run('talk', 'Hello'))).toMatchObject({ type: 'run.completed' });
    };
    /** Repeats work that loses a connection at a later moment each time, until it loses none. */
    const atEach = async (
      work: (nth: number) => Promise<unknown>,
      { step = 1, most = 100 }: { readonly step?: number; readonly most?: number } = {},
    ): Promise<void> => {
      let isLost = true;
      for (let nth = 1; isLost && nth <= most; nth += step) {
        proxy.terminateAt(moment, nth);
        await work(nth);
        isLost = proxy.spare();
        expect(uncaught).toEqual([]);
      }
    };
    /** Starts, has a run and stops; or says why it does not start. */
    const startsAndStops = async (schema: string): Promise<void> => {
      const runtime = await open(schema).catch((error: Error) => error);
      if (runtime instanceof Error) return expect(runtime.message).toMatch(/^the (store|queue) .*cannot be opened: /);
      await runtime.start('never', 'Hello').catch(() => undefined);
      await runtime.close();
    };

    beforeAll(async () => {
      proxy = await TerminatingProxy.open(place?.url ?? '', admin);
    });
    afterAll(() => proxy?.close());

    it('creates its tables, or says why it does not', async () => {
      await atEach((nth) => startsAndStops(name(`new_${nth}`)), { step: 4 });
      const runtime = await open(name('new_1'));
      await talk(runtime);
      await runtime.close();
    });

    it('starts and stops', async () => {
      await atEach(() => startsAndStops(name('old')));
      const runtime = await open(name('old'));
      await talk(runtime);
      await runtime.close();
    });

    it('commits what its runs say', async () => {
      const runtime = await open(name('commits'));
      // Its polls lose a connection in any case.
      await atEach(() => talk(runtime), { most: 24 });
      await runtime.close();
    });
  },
  600_000,
);
