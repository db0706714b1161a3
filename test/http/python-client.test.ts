import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { agent, echo, never, Tap } from '../support/agents.ts';
import { ask, serveApi } from '../support/serve.ts';

const sse = { accept: 'text/event-stream' };

/** Checks that every event has a number and an object with a type, and returns the numbers. */
const numbersOf = (text: string): number[] =>
  readAsPython(text).map(({ id, data }) => {
    expect(JSON.parse(data)).toMatchObject({ type: expect.any(String) });
    return Number(id);
  });

describe('a stream, read by ACP’s Python client', () => {
  it('has only the events of the run', async () => {
    const served = await serveApi([echo]);
    const live = await (await served.post('/runs', ask('echo', 'a\u2028b\u0085c', { mode: 'stream' }))).text();
    expect(numbersOf(live)).toEqual([1, 2, 3, 4, 5, 6]);
    const { run_id } = JSON.parse(readAsPython(live)[0]?.data ?? '').run;
    const rest = await (await served.get(`/runs/${run_id}/events`, { ...sse, 'last-event-id': '4' })).text();
    expect(numbersOf(rest)).toEqual([5, 6]);
  });

  it('has the retry time in the block of the first event', async () => {
    const served = await serveApi([echo], { retry: 250 });
    const text = await (await served.post('/runs', ask('echo', 'a', { mode: 'stream' }))).text();
    expect(text).toMatch(/^retry: 250\ndata: .*\nid: 1\n/);
  });

  it('does not end at the comments that keep it open', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent], { heartbeat: 5 });
    const response = await served.post('/runs', ask('tap', 'a', { mode: 'stream' }));
    await tap.started();
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.endsWith(':\n:\n:\n')) tap.push('after a while');
      if (text.includes('after a while')) tap.complete();
    }
    expect(text).toMatch(/\n\n(:\n){3,}data: /);
    expect(numbersOf(text)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('begins with comments where there is no event after the cursor', async () => {
    const served = await serveApi([never], { heartbeat: 5 });
    const { run_id } = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const response = await served.get(`/runs/${run_id}/events?after=2`, sse);
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.endsWith(':\n:\n:\n')) break;
    }
    expect(text).toMatch(/^retry: \d+\n(:\n)+$/);
    expect(readAsPython(text)).toEqual([]);
  });
});

describe('a request of ACP’s Python client', () => {
  const body = JSON.stringify(ask('echo'));
  // `fetch` would add a content type.
  const post = async (headers: Record<string, string>, method: 'POST' | 'GET' = 'POST') => {
    const served = await serveApi([echo]);
    return served.app.inject({
      method,
      url: '/runs',
      headers,
      payload: method === 'POST' ? Buffer.from(body) : undefined,
    });
  };

  it('needs no content type', async () => {
    const response = await post({ 'content-length': String(body.length) });
    expect([response.statusCode, response.json().status]).toEqual([200, 'completed']);
  });

  it.each([
    ['of no type, from a page', { host: 'localhost', origin: 'http://localhost' }, 'no content type'],
    ['of text', { 'content-type': 'text/plain' }, 'text/plain'],
  ])('is refused with 415 where its body is %s', async (_, headers, got) => {
    const response = await post({ 'content-length': String(body.length), ...headers });
    expect([response.statusCode, response.json()]).toEqual([
      415,
      { code: 'invalid_input', message: `Send application/json in UTF-8; got ${got}.`, data: { reason: 'media_type' } },
    ]);
  });
});

describe('a stream that fails', () => {
  it('ends with an error without details of the store, which are in the log', async () => {
    const lines: string[] = [];
    const store = await openStore('memory:');
    const logger = { level: 'error', stream: { write: (line: string) => lines.push(line) } };
    const long = agent('long', () => Array.from({ length: 2_000 }, (_, n) => `${n} ${'x'.repeat(200)}`));
    const { events } = store;
    // A rejection would be retried; this is a fault.
    const damaged = Object.defineProperty([], 0, {
      get() {
        throw new Error('cannot open /var/lib/db: postgres://admin:hunter2@db');
      },
    });
    store.events = async (id, after) => (after > 0 && after < 1_900 ? damaged : events.call(store, id, after, 100));
    const served = await serveApi([long], { store, logger });
    const { run_id } = await (await served.post('/runs', ask('long', 'a', { mode: 'async' }))).json();
    while ((await (await served.get(`/runs/${run_id}`)).json()).status !== 'completed');
    const text = await (await served.get(`/runs/${run_id}/events`, sse)).text();
    const last = JSON.parse(readAsPython(text).at(-1)?.data ?? '');
    const logged = lines.map((line) => JSON.parse(line)).find(({ err }) => err?.message.includes('hunter2'));
    expect(text).not.toMatch(/hunter2|\/var\/lib/);
    expect(last).toEqual({
      type: 'error',
      error: {
        code: 'server_error',
        message: expect.stringContaining(`request ${logged.request_id}`),
        data: { reason: 'internal_error' },
      },
    });
  });
});

/** One event as httpx-sse passes it to ACP's Python client. */
interface PythonEvent {
  readonly id: string;
  readonly data: string;
}

/**
 * Reads a stream as httpx-sse 0.4 does. It differs from the standard in one point: once an id was seen, or if the block
 * has a `retry`, a blank line is an event, even without data. ACP's Python client parses the data of each event as
 * JSON, and fails at the first one that is not JSON.
 */
function readAsPython(text: string): PythonEvent[] {
  const events: PythonEvent[] = [];
  let [id, retry, data]: [string, string | undefined, string[]] = ['', undefined, []];
  // An incomplete line is kept for later. httpx breaks lines at these characters as well.
  for (const line of text.split(/\r\n|[\r\n\u0085\u2028\u2029]/).slice(0, -1)) {
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (line !== '') {
      if (field === 'id') id = value;
      if (field === 'data') data.push(value);
      if (field === 'retry') retry = value;
    } else if (id !== '' || data.length > 0 || retry !== undefined) {
      events.push({ id, data: data.join('\n') });
      [retry, data] = [undefined, []];
    }
  }
  return events;
}
