import { concat, lastValueFrom, map, of, take, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Cursor } from '../../src/engine/log/cursor.ts';
import type { Run } from '../../src/index.ts';
import { agent, echo, Tap } from '../support/agents.ts';
import { engineOf } from '../support/engine.ts';
import { oneMessage } from '../support/run-output.ts';
import { ask, frames, serveApi, types } from '../support/serve.ts';

const request = (agent_name: string) => ({ agent_name, input: [{ parts: [{ content: 'hi' }] }] });
const typesOf = (lines: readonly string[]): string[] => types(lines.map((line) => JSON.parse(line)));

/** The events of a cursor until it has to wait, or is at its end. */
const drain = (cursor: Cursor): string[] => {
  const found: string[] = [];
  for (let batch = cursor.read(); batch !== 'later' && batch !== 'end'; batch = cursor.read())
    found.push(...batch.lines);
  return found;
};

describe('the run stream', () => {
  it('is cold: each subscription gets history first, then live events, from its own position', async () => {
    const tap = new Tap();
    const engine = await engineOf([tap.agent]);
    const { run_id } = await engine.create(request('tap'));
    await tap.started();
    tap.push('one');
    const stream = await engine.stream(run_id);
    const all = (): Promise<string[]> =>
      lastValueFrom(
        stream.pipe(
          map(({ lines }) => lines),
          toArray(),
          map((found) => found.flat()),
        ),
      );
    const early = all();
    await lastValueFrom(stream.pipe(take(1)));
    tap.push('two');
    tap.complete();
    const whole = await early;
    expect(typesOf(whole)).toEqual(oneMessage(2));
    expect(await all()).toEqual(whole);
  });

  it('is an async iterable, and gives writers a pull cursor', async () => {
    const engine = await engineOf([echo]);
    const { run_id } = await engine.create(request('echo'));
    const stream = await engine.stream(run_id);
    const iterated: string[] = [];
    for await (const { lines } of stream) iterated.push(...lines);
    const cursor = stream.cursor();
    const pulled: string[] = [];
    while (pulled.length < iterated.length) {
      pulled.push(...drain(cursor));
      if (pulled.length < iterated.length) await new Promise<void>((resolve) => cursor.onReady(resolve));
    }
    cursor.close();
    expect(pulled).toEqual(iterated);
  });

  it('releases the log when a subscriber unsubscribes in the middle of a batch', async () => {
    const tap = new Tap();
    const engine = await engineOf([tap.agent]);
    const { run_id } = await engine.create(request('tap'));
    await tap.started();
    const stream = await engine.stream(run_id);
    const [first] = await lastValueFrom(stream.pipe(take(1), toArray()));
    expect(first?.first).toBe(1);
  });
});

describe.each(['memory:', 'sqlite::memory:'])(
  'a repeated request whose run has settled before its end, on %s',
  (store) => {
    it('streams up to the next await, however the store has merged the events', async () => {
      const quick = agent('quick', (_, context) =>
        concat(of('a'), context.await('Well?').pipe(map(() => 'b')), of('c')),
      );
      const served = await serveApi([quick], { store });
      const headers = { 'idempotency-key': 'k' };
      const run: Run = await (await served.post('/runs', ask('quick'), headers)).json();
      expect(run.status).toBe('awaiting');
      const reply = { await_resume: { type: 'message', message: { parts: [{ content: 'yes' }] } }, mode: 'sync' };
      expect((await (await served.post(`/runs/${run.run_id}`, reply)).json()).status).toBe('completed');
      const again = await frames(await served.post('/runs', ask('quick', 'hi', { mode: 'stream' }), headers));
      expect(types(again.map(({ event }) => event)).at(-1)).toBe('run.awaiting');
      const sync: Run = await (await served.post('/runs', ask('quick'), headers)).json();
      expect(sync).toEqual(run);
    });
  },
);
