import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { interval, map, merge, NEVER, Observable, of, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agent, echo, never, Tap, tokens } from '../support/agents.ts';
import {
  ask,
  type Framed,
  finished,
  frames,
  framesUntil,
  parseFrames,
  serveApi,
  textOf,
  types,
} from '../support/serve.ts';

const sse = { accept: 'text/event-stream' };
/** Emits one token with as many characters as its input says. */
const long = agent('long', (input) => of('x'.repeat(Number(input[0]?.parts[0]?.content))));

/** Adds the text of each write of a socket; a socket makes one system call of each. */
function recordWrites(socket: Socket, sent: string[]): void {
  const { _write: write, _writev: writev } = socket;
  socket._write = (chunk, encoding, callback) => {
    sent.push(String(chunk));
    write.call(socket, chunk, encoding, callback);
  };
  socket._writev = (chunks, callback) => {
    sent.push(chunks.map(({ chunk }) => String(chunk)).join(''));
    writev?.call(socket, chunks, callback);
  };
}

/** A call of a tool in MCP of 2025-11-25, from a client that wants its progress, which makes the answer a stream. */
const callWithProgress = (name: string): object => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: { input: 'a' }, _meta: { progressToken: 1 } },
});

describe('a stream', () => {
  it('begins with headers for proxies, the id of the run and a retry time, before any output of the agent', async () => {
    const served = await serveApi([never]);
    const response = await served.post('/runs', ask('never', 'a', { mode: 'stream' }));
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'run-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      location: `/runs/${response.headers.get('run-id')}`,
    });
    const first = await response.body?.getReader().read();
    expect(new TextDecoder().decode(first?.value)).toMatch(/^retry: \d+\n/);
  });

  it('has frames with only id and data, with LF, numbered from 1', async () => {
    const served = await serveApi([tokens]);
    const text = await (await served.post('/runs', ask('tokens', '3', { mode: 'stream' }))).text();
    expect(text.replace(/^data: .*$/gm, 'data')).toBe(
      `retry: 1000\n${Array.from({ length: 8 }, (_, n) => `data\nid: ${n + 1}\n\n`).join('')}`,
    );
  });

  it('sends each token at once', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent]);
    const response = await served.post('/runs', ask('tap', 'a', { mode: 'stream' }));
    await tap.started();
    tap.push('first');
    const seen = await framesUntil(response, ({ event }) => event.type === 'message.part');
    expect(seen.map(({ event }) => event.type)).toContain('message.part');
    const { run_id } = await (await served.get(`/runs/${response.headers.get('run-id')}`)).json();
    expect(tap.unsubscriptions).toBe(0);
    tap.push(' second');
    tap.complete();
    expect(textOf(await finished(served, run_id))).toBe('first second');
    expect(tap.subscriptions).toBe(1);
  });

  it.each<[protocol: string, path: string, body: object, last: string]>([
    ['ACP', '/runs', ask('tap', 'a', { mode: 'stream' }), 'run.completed'],
    ['MCP, which sends progress at intervals', '/mcp', callWithProgress('tap'), '"result":'],
  ])('sends its last events and its end in one system call: %s', async (_, path, body, last) => {
    const tap = new Tap();
    const served = await serveApi([tap.agent], { protocols: ['mcp'] });
    const sent: string[] = [];
    served.app.server.on('connection', (socket: Socket) => recordWrites(socket, sent));
    const response = await served.post(path, body, { accept: 'application/json, text/event-stream' });
    await tap.started();
    tap.push('first');
    tap.complete();
    expect(await response.text()).toContain(last);
    expect(sent.at(-1)).toContain(last);
    expect(sent.at(-1)).toMatch(/\r\n0\r\n\r\n$/);
  });

  it('sends its head and the output of an agent that answers at once in one system call', async () => {
    const inTurn = agent(
      'in-turn',
      () =>
        new Observable<string>((subscriber) => {
          setImmediate(() => {
            subscriber.next('later');
            subscriber.complete();
          });
        }),
    );
    const served = await serveApi([tokens, inTurn]);
    const sent: string[] = [];
    served.app.server.on('connection', (socket: Socket) => recordWrites(socket, sent));
    for (const name of ['tokens', 'in-turn']) {
      sent.length = 0;
      const response = await served.post('/runs', ask(name, '3', { mode: 'stream' }));
      expect(await response.text()).toContain('run.completed');
      expect(sent).toEqual([expect.stringMatching(/^HTTP\/1\.1 200 .*run\.created.*run\.completed.*\r\n0\r\n\r\n$/s)]);
    }
  });

  it('resumes after any event of a live or a final run', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent]);
    const { run_id } = await (await served.post('/runs', ask('tap', 'a', { mode: 'async' }))).json();
    await tap.started();
    tap.push('a');
    tap.push('b');
    const live = await Promise.all([0, 1, 2].map((after) => served.get(`/runs/${run_id}/events?after=${after}`, sse)));
    tap.push('c');
    tap.complete();
    const [whole = [], ...rest] = await Promise.all(live.map(frames));
    expect(whole.map(({ id }) => id)).toEqual(whole.map((_, index) => index + 1));
    expect(rest).toEqual([whole.slice(1), whole.slice(2)]);
    for (let after = 0; after < whole.length; after += 1) {
      const replay = await frames(
        await served.get(`/runs/${run_id}/events`, { ...sse, 'last-event-id': String(after) }),
      );
      expect(replay).toEqual(whole.slice(after));
    }
  });

  it('answers 204 after the last event of a final run, so that an EventSource stops', async () => {
    const served = await serveApi([echo]);
    const run = await (await served.post('/runs', ask('echo'))).json();
    const response = await served.get(`/runs/${run.run_id}/events`, { ...sse, 'last-event-id': '6' });
    expect([response.status, await response.text()]).toEqual([204, '']);
  });

  it('keeps an idle connection open with comments', async () => {
    const served = await serveApi([never], { heartbeat: 10 });
    const response = await served.post('/runs', ask('never', 'a', { mode: 'stream' }));
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.split('\n:').length > 3) break;
    }
    expect(types((await framesOf(text)).map(({ event }) => event))).toEqual(['run.created', 'run.in-progress']);
  });

  it('does not stop the run when it is dropped or not read', async () => {
    const served = await serveApi([agent('slow', () => interval(1).pipe(take(30), map(String)))]);
    const response = await served.post('/runs', ask('slow', 'a', { mode: 'stream' }));
    const run_id = response.headers.get('run-id') ?? '';
    await response.body?.cancel();
    expect((await finished(served, run_id)).status).toBe('completed');
  });

  it('is closed when its reader disconnects', async () => {
    const served = await serveApi([never]);
    const { run_id } = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const readers = await Promise.all(Array.from({ length: 20 }, () => served.get(`/runs/${run_id}/events`, sse)));
    const connections = (): Promise<number> =>
      new Promise((resolve) => served.app.server.getConnections((_, count) => resolve(count)));
    expect(await connections()).toBeGreaterThanOrEqual(20);
    await Promise.all(readers.map((reader) => reader.body?.cancel()));
    while ((await connections()) > 2) await new Promise((resolve) => setImmediate(resolve));
  });

  it('reaches a slow reader completely, without delaying fast ones', async () => {
    const served = await serveApi([tokens]);
    const n = 20_000;
    const { run_id } = await (await served.post('/runs', ask('tokens', '1', { mode: 'async' }))).json();
    await finished(served, run_id);
    const { hostname, port } = new URL(served.url);
    const big = await served.post('/runs', ask('tokens', String(n), { mode: 'async' }));
    const id = (await big.json()).run_id;
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET /runs/${id}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n`,
    );
    socket.pause();
    expect((await finished(served, id)).status).toBe('completed');
    let text = '';
    socket.setEncoding('utf8');
    for await (const chunk of socket) text += chunk;
    expect(text.match(/^id: \d+$/gm)).toHaveLength(n + 5);
  });

  it('carries text of any script, in chunks of the right size', async () => {
    const words = ['Flüsse ', '川 ', '🌊 ', 'plain'];
    const served = await serveApi([agent('words', () => words)]);
    const seen = await frames(await served.post('/runs', ask('words', 'a', { mode: 'stream' })));
    const said = seen.map(({ event }) => (event.type === 'message.part' ? event.part.content : undefined));
    expect(said.filter(Boolean)).toEqual(words);
  });

  it('supports clients of HTTP/1.0, which has no chunks', async () => {
    const served = await serveApi([tokens]);
    const { run_id } = await (await served.post('/runs', ask('tokens', '3'))).json();
    const { hostname, port } = new URL(served.url);
    const socket = connect(Number(port), hostname).setEncoding('utf8');
    socket.write(`GET /runs/${run_id}/events HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += chunk;
    const body = text.slice(text.indexOf('\r\n\r\n') + 4);
    expect(body.replace(/^data: .*$/gm, 'data')).toBe(
      `retry: 1000\n${Array.from({ length: 8 }, (_, n) => `data\nid: ${n + 1}\n\n`).join('')}`,
    );
  });

  it('waits for the earlier responses of its connection, and loses nothing meanwhile', async () => {
    const [first, second] = [new Tap('first'), new Tap('second')];
    const served = await serveApi([first.agent, second.agent]);
    const begin = async (name: string): Promise<string> =>
      (await (await served.post('/runs', ask(name, 'a', { mode: 'async' }))).json()).run_id;
    const ids = [await begin('first'), await begin('second')];
    await Promise.all([first.started(), second.started()]);
    const { hostname, port, host } = new URL(served.url);
    const socket = connect(Number(port), hostname).setEncoding('utf8');
    for (const [n, id] of ids.entries()) {
      const end = n === 1 ? 'Connection: close\r\n' : '';
      socket.write(`GET /runs/${id}/events HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n${end}\r\n`);
    }
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    const heard = async (what: string): Promise<void> => {
      while (!text.includes(what)) await once(socket, 'data');
    };
    second.push('before its turn');
    first.push('one');
    await heard('one');
    expect(text).not.toContain('before its turn');
    first.complete();
    await heard('before its turn');
    second.push('two');
    second.complete();
    await once(socket, 'end');
    const bodies = text.split('HTTP/1.1 200 OK').slice(1);
    expect(bodies.map((body) => body.match(/^id: \d+$/gm))).toEqual(
      [6, 7].map((n) => Array.from({ length: n }, (_, i) => `id: ${i + 1}`)),
    );
    expect(bodies.map((body) => body.endsWith('\r\n0\r\n\r\n'))).toEqual([true, true]);
  });

  it('answers HEAD at once', async () => {
    const served = await serveApi([never]);
    const { run_id } = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const response = await fetch(`${served.url}/runs/${run_id}/events`, { method: 'HEAD', headers: sse });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET']);
  });
});

async function framesOf(text: string) {
  return frames(new Response(text));
}

describe('a server that closes', () => {
  it('ends open streams with the end of their runs, at once', async () => {
    const served = await serveApi([agent('long', () => merge(of('a'), NEVER))]);
    const response = await served.post('/runs', ask('long', 'a', { mode: 'stream' }));
    const reading = frames(response);
    await served.app.close();
    const seen = await reading;
    expect(seen.at(-1)?.event).toMatchObject({
      type: 'run.failed',
      run: { error: { code: 'server_error', data: { reason: 'run_interrupted' } } },
    });
  });
});

/** The text of a complete stream: its events have the numbers from 1 on, and the last one ends the run. */
function wholeText(seen: readonly Framed[]): string {
  expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => index + 1));
  expect(seen.at(-1)?.event.type).toBe('run.completed');
  return seen.map(({ event }) => (event.type === 'message.part' ? event.part.content : '')).join('');
}

/** For streams that would hang. */
const timeout = 20_000;

describe('a stream of an injected request', () => {
  const many = Array.from({ length: 3_000 }, (_, n) => `t${n} `).join('');
  const outputs: [what: string, name: string, input: string, text: string][] = [
    ['3,000 tokens', 'tokens', '3000', many],
    ['one token of 300 KB', 'long', '300000', 'x'.repeat(300_000)],
  ];

  it.each(outputs)(
    'has every event in order, live and of a final run: %s',
    { timeout },
    async (_, name, input, text) => {
      const { app } = await serveApi([tokens, long]);
      const live = await app.inject({ method: 'POST', url: '/runs', payload: ask(name, input, { mode: 'stream' }) });
      const seen = parseFrames(live.body);
      expect(wholeText(seen)).toBe(text);
      const replay = await app.inject({ url: `/runs/${live.headers['run-id']}/events`, headers: sse });
      expect(parseFrames(replay.body)).toEqual(seen);
    },
  );

  it.each(outputs)('waits for a reader that takes it as a stream: %s', { timeout }, async (_, name, input, text) => {
    const served = await serveApi([tokens, long]);
    const payload = ask(name, input, { mode: 'stream' });
    const response = await served.app.inject({ method: 'POST', url: '/runs', payload, payloadAsStream: true });
    const stream = response.stream().setEncoding('utf8');
    // Another reader has all of it, and this one has read nothing.
    await finished(served, String(response.headers['run-id']));
    // The longest event, the buffer of the stream and one piece; the rest, at least as much, is in the log.
    expect(stream.readableLength).toBeLessThan(text.length + 100_000);
    let body = '';
    for await (const chunk of stream) {
      body += chunk;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(wholeText(parseFrames(body))).toBe(text);
  });
});
