import { join } from 'node:path';
import { stream } from '@durable-streams/client';
import { concat, of } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import type { Event } from '../../../src/index.ts';
import { agent, askOnce, Tap, tokens } from '../../support/agents.ts';
import { newFolder } from '../../support/folder.ts';
import { ask, eventsOf, type Served, serve, types } from '../../support/serve.ts';
import { follow, followWithCuts } from './follow.ts';

const folder = newFolder(afterAll);

/** A file, a citation and a tool call, beside text that is long in bytes. */
const rich = agent('rich', () =>
  concat(
    of('Grüße 👋 ', 'a "quoted"\n\u2028text'),
    of({ content_type: 'image/png', content_encoding: 'base64' as const, content: 'aGk=', name: 'a.png' }),
    of({ content: '', metadata: { kind: 'citation' as const, url: 'https://example.com/', title: 'A' } }),
    of({
      content: '',
      metadata: { kind: 'trajectory' as const, tool_name: 'look', tool_input: { a: 1 }, tool_output: { b: 2 } },
    }),
  ),
);
const fails = agent('fails', async () => {
  throw new Error('It broke.');
});

const idOf = async (served: Served, name: string, text = 'hi'): Promise<string> =>
  (await (await served.post('/runs', ask(name, text, { mode: 'async' }))).json()).run_id;

const pathOf = (run_id: string): string => `/runs/${run_id}/stream`;
const modes = ['long-poll', 'sse', true] as const;

describe.each(['memory:', `sqlite:${join(folder, 'runs.db')}`])('the client of Durable Streams, on %s', (store) => {
  it.each(modes)('reads each kind of event and each end (live: %s)', async (live) => {
    const served = await serve([rich, fails, tokens], { store });
    for (const [name, last] of [
      ['rich', 'run.completed'],
      ['fails', 'run.failed'],
      ['tokens', 'run.completed'],
    ] as const) {
      const run_id = await idOf(served, name, '300');
      const { events, failures } = await follow(served.url + pathOf(run_id), { live });
      expect(types(events).at(-1)).toBe(last);
      expect([events, failures]).toEqual([await eventsOf(served, run_id), 0]);
    }
  });

  it.each(modes)('follows a run over its question to its end (live: %s)', async (live) => {
    const served = await serve([askOnce], { store });
    const run_id = await idOf(served, 'ask');
    const reply = { mode: 'async', await_resume: { message: { parts: [{ content: 'yes' }] } } };
    const onEvent = ({ type }: Event): void => {
      if (type === 'run.awaiting') void served.post(`/runs/${run_id}`, reply);
    };
    const { events, failures } = await follow(served.url + pathOf(run_id), { live, onEvent });
    expect(types(events)).toContain('run.awaiting');
    expect([events, failures]).toEqual([await eventsOf(served, run_id), 0]);
  });

  it.each(modes)('sees the end of a run that is cancelled (live: %s)', async (live) => {
    const tap = new Tap();
    const served = await serve([tap.agent], { store });
    const run_id = await idOf(served, 'tap');
    const onEvent = ({ type }: Event): void => {
      if (type === 'run.in-progress') void served.post(`/runs/${run_id}/cancel`);
    };
    const { events } = await follow(served.url + pathOf(run_id), { live, onEvent });
    expect(types(events).at(-1)).toBe('run.cancelled');
  });

  // nodes.servers.ts cuts after every tenth byte.
  it.each(modes)('misses and repeats nothing, wherever its connections are cut (live: %s)', async (live) => {
    await followWithCuts(live, 1_050, async (tap) => [await serve([tap.agent], { store })]);
  });
});

describe('the client of Durable Streams', () => {
  it('gets all events of a long run in one read', async () => {
    const served = await serve([tokens]);
    const { run_id } = await (await served.post('/runs', ask('tokens', '4000'))).json();
    const url = served.url + pathOf(run_id);
    const response = await stream<Event>({ url, live: false, warnOnHttp: false });
    expect(await response.json()).toEqual(await eventsOf(served, run_id));
    expect([response.offset, response.upToDate, response.streamClosed]).toEqual(['0000000000004005', true, true]);
  });

  it('goes on in another connection when the server ends a stream of Server-Sent Events', async () => {
    const tap = new Tap();
    const served = await serve([tap.agent], { durableStreamTimeout: 80 });
    const run_id = await idOf(served, 'tap');
    await tap.started();
    let connections = 0;
    const counting: typeof fetch = (input, init) => {
      connections += 1;
      if (connections === 4) tap.push('late');
      if (connections === 5) tap.complete();
      return fetch(input, init);
    };
    // The client takes connections of less than a second for those of a proxy that ends them.
    const options = { fetch: counting, sseResilience: { minConnectionDuration: 0 } };
    const { events, failures } = await follow(served.url + pathOf(run_id), { live: 'sse', ...options });
    expect([events, failures]).toEqual([await eventsOf(served, run_id), 0]);
    expect(connections).toBeGreaterThanOrEqual(5);
  });
});
