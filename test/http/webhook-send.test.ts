import { getEventListeners } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Delivery, newDelivery } from '../../src/core/ports/outbox.ts';
import type { Attempt } from '../../src/engine/webhooks/deliverer.ts';
import { WebhookSecrets } from '../../src/http/outbound/webhook-secrets.ts';
import { createSend } from '../../src/http/outbound/webhook-send.ts';
import { deferred } from '../support/deferred.ts';
import { loopbackHosts } from '../support/loopback-hosts.ts';
import { listenOn } from '../support/ports.ts';

const secrets = new WebhookSecrets(['the master secret of the test of sending']);
const never = new AbortController().signal;

async function receiver(listener: RequestListener, onConnection = (): void => {}): Promise<string> {
  const server = createServer(listener).on('connection', onConnection);
  onTestFinished(() => void server.close().closeAllConnections());
  return `${await listenOn(server)}/hook`;
}

function deliveryTo(url: string): Delivery {
  const fresh = {
    delivery_id: 'd',
    url,
    target: null,
    type: 'run.completed',
    body: '{}',
    created_at: '2026-01-01T00:00:00.000Z',
  };
  return newDelivery(fresh, { run_id: 'r', owner: null });
}

const sendTo = (url: string, { time = 60_000, signal = never } = {}): Promise<Attempt> =>
  createSend(secrets, ['127.0.0.1'], time)(deliveryTo(url), signal);

describe('an attempt to send a webhook', () => {
  it('takes an answer that never ends by its status, and closes the connection', async () => {
    const { promise: isClosed, resolve: closed } = deferred();
    const url = await receiver((_, response) => {
      response.writeHead(200);
      const endless = setInterval(() => response.write('x'.repeat(65_536)), 1);
      response.on('close', () => {
        clearInterval(endless);
        closed();
      });
    });
    expect(await sendTo(url)).toEqual({ status: 200, error: null });
    await isClosed;
  });

  it('leaves nothing with the signal that stops all attempts', async () => {
    const quick = await receiver((_, response) => response.end());
    const { signal } = new AbortController();
    const attempts = Array.from({ length: 20 }, () => sendTo(quick, { signal }));
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    expect(new Set((await Promise.all(attempts)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    // What Node 20 keeps of each signal that depends on another, for as long as that one lives.
    const kept = Object.getOwnPropertySymbols(signal).filter(({ description }) => description === 'kDependantSignals');
    expect(kept.map((symbol) => Reflect.get(signal, symbol))).toEqual(kept.map(() => new Set()));
  });

  it('does not begin where the server has stopped', async () => {
    const silent = await receiver(() => {});
    const error = 'the server stopped during the attempt';
    expect(await sendTo(silent, { signal: AbortSignal.abort() })).toEqual({ status: null, error });
  });

  it('ends after its time, whether the receiver is silent or sends headers for ever', async () => {
    const silent = await receiver(() => {});
    const dripping = await receiver((request) => {
      request.socket.write('HTTP/1.1 200 OK\r\n');
      const drip = setInterval(() => request.socket.write('X-More: 1\r\n'), 5);
      request.socket.on('error', () => {}).on('close', () => clearInterval(drip));
    });
    for (const url of [silent, dripping]) {
      const { status, error } = await sendTo(url, { time: 200 });
      expect([status, error]).toEqual([null, expect.stringMatching(/took longer than 200 ms|cannot be reached/)]);
    }
  });

  it('fails at another protocol, at what is no HTTP, and at a connection that breaks', async () => {
    const switching = await receiver((request) =>
      request.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'),
    );
    expect(await sendTo(switching)).toMatchObject({ status: 101, error: 'it answered 101' });
    for (const text of ['SSH-2.0-x\r\n', '', 'HTTP/1.1 200 OK\r\nContent-Length: 9']) {
      const url = await receiver((request) => request.socket.end(text));
      expect(await sendTo(url)).toMatchObject({ status: null, error: expect.stringContaining('cannot be reached') });
    }
    const reset = await receiver((request) => request.socket.resetAndDestroy());
    expect((await sendTo(reset)).status).toBeNull();
  });

  it('fails where the URL is none', async () => {
    expect(await sendTo('nowhere')).toMatchObject({
      status: null,
      error: expect.stringContaining('cannot be reached'),
    });
  });

  it('ends when the server stops', async () => {
    const stop = new AbortController();
    const url = await receiver(() => stop.abort());
    expect(await sendTo(url, { signal: stop.signal })).toEqual({
      status: null,
      error: 'the server stopped during the attempt',
    });
  });

  it('knows the date of a Retry-After as well', async () => {
    const later = new Date(Date.now() + 120_000).toUTCString();
    const url = await receiver((_, response) => response.writeHead(503, { 'retry-after': later }).end());
    const { retryAfter = 0 } = await sendTo(url);
    // A date has no milliseconds.
    expect(retryAfter).toBeGreaterThan(60);
    expect(retryAfter).toBeLessThanOrEqual(120);
  });

  it.each(loopbackHosts)('makes no connection to %s, where a server listens', async (host) => {
    let connections = 0;
    const url = new URL(
      await receiver(
        (_, response) => void response.end(),
        () => (connections += 1),
      ),
    );
    const attempt = await createSend(secrets, [])(deliveryTo(`http://${host}:${url.port}/`), never);
    expect(attempt).toMatchObject({ status: null, error: expect.stringContaining('its address is private') });
    expect(connections).toBe(0);
  });

  it('looks at an odd Retry-After without harm', async () => {
    for (const [given, retryAfter] of [
      ['120', 120],
      ['-5', undefined],
      ['soon', undefined],
      ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
      ['1e400', Number.POSITIVE_INFINITY],
    ]) {
      const url = await receiver((_, response) => response.writeHead(503, { 'retry-after': String(given) }).end());
      expect([given, (await sendTo(url)).retryAfter]).toEqual([given, retryAfter]);
    }
  });
});
