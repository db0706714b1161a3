import { createServer, type RequestListener } from 'node:http';
import { createClient } from 'rivulet/client';
import { lastValueFrom, toArray } from 'rxjs';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { deferred } from '../support/deferred.ts';
import { listenOn } from '../support/ports.ts';
import { completed, created, fastReconnect, frame, openStream, run_id, script, stream } from './script.ts';

const url = 'http://rivulet.test/';
const run = { run_id, agent_name: 'a', status: 'in-progress', output: [], created_at: '2026-01-01T00:00:00.000Z' };
const raw = (data: string, id = '2'): string => `id: ${id}\ndata: ${data}\n\n`;

describe('malformed events', () => {
  it.each([
    ['null', 'null'],
    ['a number', '5'],
    ['a list', '[]'],
    ['no type', '{}'],
    ['a run event without a run', '{"type":"run.completed"}'],
    ['a run that is null', '{"type":"run.completed","run":null}'],
    ['a run of an unknown status', JSON.stringify({ type: 'run.in-progress', run: { ...run, status: 'dreaming' } })],
    ['a run without output', JSON.stringify({ type: 'run.in-progress', run: { ...run, output: undefined } })],
    ['a run whose error is a text', JSON.stringify({ type: 'run.failed', run: { ...run, error: 'no' } })],
    ['a message event without a message', '{"type":"message.created"}'],
    ['a message whose parts are no list', '{"type":"message.created","message":{"role":"agent","parts":{}}}'],
    ['a part that is a text', '{"type":"message.part","part":"Hi"}'],
    ['a part whose content is a number', '{"type":"message.part","part":{"content":5}}'],
    ['a part without a part', '{"type":"message.part"}'],
    ['a generic event without its object', '{"type":"generic","generic":[]}'],
    ['a run in an event of an unknown type', '{"type":"dream","run":{}}'],
  ])('end the stream with not_understood, once: %s', async (_what, data) => {
    const { fetch, requests } = script(stream(created + raw(data)));
    const events = createClient({ url, fetch, ...fastReconnect() }).watch(run_id);
    const types: string[] = [];
    const error = await events.forEach(({ type }) => void types.push(type)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ClientError', code: 'not_understood', retryable: false });
    expect(types).toEqual(['run.created']);
    expect(requests).toHaveLength(1);
  });

  it.each(['0x2', '2e0', '+2', ' 2', '2.0', '-1', '0', '', 'two', '٢'])(
    'with an id that is not plain decimal end the stream: %j',
    async (id) => {
      const { fetch } = script(stream(created + raw(JSON.stringify({ type: 'generic', generic: {} }), id)));
      const events = createClient({ url, fetch, ...fastReconnect() }).watch(run_id);
      await expect(lastValueFrom(events)).rejects.toMatchObject({ code: 'not_understood' });
    },
  );

  it('do not include events of a newer server, which are passed on', async () => {
    const newer = raw('{"type":"dream.began","dream":{}}') + raw(JSON.stringify({ type: 'run.dreaming', run }), '3');
    const { fetch } = script(stream(created + newer + completed(4)));
    const events = await lastValueFrom(createClient({ url, fetch }).watch(run_id).pipe(toArray()));
    expect(events.map(({ type }) => type)).toEqual(['run.created', 'dream.began', 'run.dreaming', 'run.completed']);
  });
});

describe('malformed responses', () => {
  it.each(['null', '[]', '{}', JSON.stringify({ ...run, status: 'dreaming' }), '{"runs":[null]}', '{"agents":5}'])(
    'fail with not_understood: %s',
    async (body) => {
      const fetch = async (): Promise<Response> => new Response(body);
      const client = createClient({ url, fetch });
      for (const call of [
        client.get(run_id),
        client.runs(),
        client.agents(),
        client.start('a', 'Hi'),
        client.cancel(run_id),
      ]) {
        await expect(call).rejects.toMatchObject({ code: 'not_understood', status: 200 });
      }
    },
  );
});

describe('a server that sends retry: 0', () => {
  it('is retried after at least half a second, and its comments do not reset the attempts', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const answers = Array.from({ length: 20 }, () => stream('retry: 0\n: here\n\n'));
    const { fetch, requests } = script(...answers);
    const delays: number[] = [];
    const onBreak = ({ delay }: { delay: number }): void => {
      delays.push(delay);
      // The timer of the next attempt is set after this function has returned.
      setImmediate(() => vi.advanceTimersByTime(delay));
    };
    const events = createClient({ url, fetch, reconnect: { retries: 6, onBreak } }).watch(run_id);
    await expect(lastValueFrom(events)).rejects.toMatchObject({ code: 'interrupted' });
    expect(requests).toHaveLength(7);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(500);
    expect(delays.at(-1)).toBeGreaterThanOrEqual(30_000);
  });
});

describe('ids that would change the path', () => {
  it.each(['..', '.', '', '\ud800'])('are refused without a request: %j', async (id) => {
    const { fetch, requests } = script();
    const client = createClient({ url, fetch, ...fastReconnect() });
    const calls = [
      client.get(id),
      client.cancel(id),
      client.remove(id),
      client.resume(id, 'yes'),
      client.session(id),
      client.removeSession(id),
      client.agent(id),
      lastValueFrom(client.watch(id)),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'invalid_input', status: 422 });
    expect(requests).toEqual([]);
  });
});

/** What follows at once. Nothing of another file in this process sets a timer meanwhile. */
async function microtasks(): Promise<void> {
  for (let n = 0; n < 100; n += 1) await undefined;
}

describe('a silent server', () => {
  it('fails the call after the time-out, which is 30 s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    // A fetch that ignores the signal.
    const client = createClient({ url, fetch: () => new Promise(() => {}) });
    const calls = [client.get(run_id), client.agents(), client.remove(run_id), client.start('a', 'Hi')];
    const ended = Promise.allSettled(calls);
    await microtasks();
    expect(vi.getTimerCount()).toBe(4);
    vi.advanceTimersByTime(31_000);
    for (const result of await ended) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'silent', status: 0, retryable: true } });
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  it('fails the call in the middle of a response, and before a stream begins', async () => {
    const started = script(openStream('{"run_id":'));
    await expect(createClient({ url, fetch: started.fetch, timeout: 5 }).get(run_id)).rejects.toMatchObject({
      code: 'silent',
    });
    const { breaks, reconnect } = fastReconnect({ retries: 1 });
    const events = createClient({ url, fetch: script().fetch, timeout: 5, reconnect }).watch(run_id);
    await expect(lastValueFrom(events)).rejects.toMatchObject({ code: 'silent' });
    expect(breaks).toHaveLength(1);
  });

  it('gets a second more for each 64 kB of a body', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const call = createClient({ url, fetch: () => new Promise(() => {}) }).start('a', 'x'.repeat(640_000));
    const ended = call.catch((error: unknown) => error);
    await microtasks();
    vi.advanceTimersByTime(39_000);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(2_000);
    expect(await ended).toMatchObject({ code: 'silent' });
  });
});

let handle: RequestListener;
const server = createServer((request, response) => handle(request, response));
const at = await listenOn(server);
afterAll(() => void server.close().closeAllConnections());

describe('an unintended server', () => {
  it.each([301, 302, 303, 307, 308])('gets no request by a redirect of status %i', async (status) => {
    const requested: string[] = [];
    handle = ({ url: path = '' }, response) => {
      requested.push(path);
      const body = 'x'.repeat(1_000);
      response.writeHead(path === '/elsewhere' ? 200 : status, { location: '/elsewhere' }).end(body);
    };
    const client = createClient({ url: at, headers: { 'X-Key': 'secret' }, ...fastReconnect() });
    const refused = { code: 'redirected', status, retryable: false, message: expect.stringContaining('/elsewhere') };
    await expect(client.start('a', 'private')).rejects.toMatchObject(refused);
    await expect(lastValueFrom(client.run('a', 'private'))).rejects.toMatchObject(refused);
    expect(requested).toEqual(['/runs', '/runs']);
  });

  it('cannot fill the memory with an endless error', async () => {
    let sent = 0;
    const { promise: left, resolve: gone } = deferred();
    handle = (_request, response) => {
      response.writeHead(500).on('close', gone);
      const piece = Buffer.alloc(64 * 1024, 'x');
      const more = (): void => {
        while (!response.destroyed && response.write(piece)) sent += piece.length;
      };
      response.on('drain', more);
      more();
    };
    await expect(createClient({ url: at }).get(run_id)).rejects.toMatchObject({ status: 500, code: 'not_understood' });
    // The client closes the connection, so the server sends only what fits the sockets' buffers.
    await left;
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });
});

describe('the stream of a Rivulet server', () => {
  it('may have a retry field in the block of its first event, and comments of one line', async () => {
    const text = `retry: 4\n${created}:\n:\n${frame(2, { type: 'generic', generic: {} })}:\n`;
    const { fetch, requests } = script(stream(text), stream(`retry: 4\n:\n${completed(3)}`));
    const { breaks, reconnect } = fastReconnect();
    const events = await lastValueFrom(createClient({ url, fetch, reconnect }).watch(run_id).pipe(toArray()));
    expect(events.map(({ type }) => type)).toEqual(['run.created', 'generic', 'run.completed']);
    expect(breaks[0]?.delay).toBeGreaterThanOrEqual(4);
    expect(requests[1]?.headers.get('Last-Event-ID')).toBe('2');
  });
});
