import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import Fastify from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createServer, rivulet, type ServerOptions } from '../../src/index.ts';
import { agent, echo, never } from '../support/agents.ts';
import { send } from '../support/raw-http.ts';
import { ask, type Served, serve, shared } from '../support/serve.ts';

const portOf = (served: Served): number => Number(new URL(served.url).port);

/** Sends a request without a body, with exactly these headers. */
async function raw(served: Served, line: string, ...headers: string[]) {
  const text = [`${line} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n');
  const [answer] = await send(portOf(served), { name: line, bytes: Buffer.from(text), after: 'answer' });
  if (answer === undefined) throw new Error('no answer');
  return { ...answer, error: answer.status < 400 ? undefined : JSON.parse(answer.body) };
}

const statusOf = async (options: Partial<ServerOptions>, headers: Record<string, string>): Promise<number> => {
  const app = await createServer({ agents: [echo], docs: false, playground: false, ...options });
  onTestFinished(() => app.close());
  return (await app.inject({ url: '/ping', headers })).statusCode;
};

/** A server with the default names. */
const local = shared([echo]);

describe('the Host of a request', () => {
  it.each(['127.0.0.1:PORT', '127.0.0.1', 'localhost:PORT', 'LOCALHOST', 'localhost.:PORT', '127.1.2.3', '[::1]:PORT'])(
    'may name this machine: %s',
    async (host) => {
      const served = await local();
      const answer = await raw(served, 'GET /ping', `Host: ${host.replace('PORT', String(portOf(served)))}`);
      expect(answer.status).toBe(200);
    },
  );

  it.each([
    'evil.example',
    'evil.example:8000',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'localhost@evil.example',
    'evil.example#localhost',
    '192.0.2.7',
    '[::ffff:192.0.2.7]',
    'localhost:8000:8000',
    'local host',
    '',
  ])('is refused with 421 where it is another name, and the error says what to do: "%s"', async (host) => {
    const served = await local();
    const answer = await raw(served, 'GET /agents', `Host: ${host}`);
    expect([answer.status, answer.error.code]).toEqual([421, 'invalid_input']);
    expect(answer.error.message).toContain('--allow-host');
  });

  it('is checked before anything else, on every route', async () => {
    const served = await serve([never]);
    const { run_id } = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const pages = ['GET /', 'GET /docs/', 'GET /openapi.json', 'GET /health', 'GET /nothing', 'POST /runs'];
    const ofRun = [`GET /runs/${run_id}`, `GET /runs/${run_id}/events`, `POST /runs/${run_id}/cancel`];
    for (const line of [...pages, ...ofRun]) {
      const answer = await raw(served, line, 'Host: evil.example', 'Accept: text/event-stream');
      expect([line, answer.status]).toEqual([line, 421]);
    }
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
  });

  it.each([
    ['without one', []],
    ['with two', ['Host: localhost', 'Host: evil.example']],
    ['with the same one twice', ['Host: localhost', 'host: localhost']],
  ])('is required exactly once: a request %s is answered 400', async (_, headers) => {
    const served = await local();
    const answer = await raw(served, 'GET /ping', ...headers);
    expect([answer.status, answer.error.code]).toEqual([400, 'invalid_input']);
    expect(answer.error.message).toContain('Host header');
  });

  it('is optional for HTTP/1.0, which no browser uses', async () => {
    const served = await local();
    const socket = connect(portOf(served), '127.0.0.1').setEncoding('utf8');
    socket.write('GET /ping HTTP/1.0\r\n\r\n');
    let text = '';
    for await (const chunk of socket) text += chunk;
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('may be the host of the public URL, an allowed name, or any name with *', async () => {
    const options = { publicUrl: 'https://Agents.example.com/base', allowedHosts: ['Node1.internal'] };
    expect(await statusOf(options, { host: 'agents.example.com' })).toBe(200);
    expect(await statusOf(options, { host: 'agents.example.com:443' })).toBe(200);
    expect(await statusOf(options, { host: 'node1.internal:8000' })).toBe(200);
    expect(await statusOf(options, { host: 'node2.internal:8000' })).toBe(421);
    expect(await statusOf({ allowedHosts: ['*'] }, { host: 'anything.example' })).toBe(200);
  });

  it('may be the local address of the connection, whatever the server listens on', async ({ skip }) => {
    const address = Object.values(networkInterfaces())
      .flatMap((one) => one ?? [])
      .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
    if (address === undefined) return skip('this machine has the loopback interface only');
    const app = await createServer({ agents: [echo], docs: false, playground: false });
    onTestFinished(() => app.close());
    await app.listen({ host: '0.0.0.0', port: 0 });
    const { port } = new URL(app.listeningOrigin);
    expect((await fetch(`http://${address}:${port}/ping`)).status).toBe(200);
  });

  it('may be one that a proxy sends, where the server listens on every address and has a public URL', async () => {
    const app = await createServer({ agents: [echo], publicUrl: 'https://agents.example.com', playground: false });
    onTestFinished(() => app.close());
    await app.listen({ host: '0.0.0.0', port: 0 });
    const { port } = new URL(app.listeningOrigin);
    const body = JSON.stringify(ask('echo', 'a', { mode: 'stream' }));
    const asked = async (host: string): Promise<number[]> => {
      const lines = [
        'POST /runs HTTP/1.1',
        `Host: ${host}`,
        'Origin: https://agents.example.com',
        'X-Forwarded-Proto: https',
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        'Connection: close',
      ];
      const bytes = Buffer.from([...lines, '', body].join('\r\n'));
      return (await send(Number(port), { name: host, bytes, after: 'answer' })).map(({ status }) => status);
    };
    expect(await asked('agents.example.com')).toEqual([200]);
    // A health check by the address of the node, and a proxy that sends its own name.
    expect(await asked(`127.0.0.1:${port}`)).toEqual([200]);
    expect(await asked('upstream')).toEqual([421]);
  });

  it('is checked only for the routes of the plugin', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    app.get('/own', async () => 'ok');
    await app.register(rivulet, { prefix: '/acp', agents: [echo], docs: false, playground: false });
    const headers = { host: 'app.example' };
    expect((await app.inject({ url: '/own', headers })).statusCode).toBe(200);
    expect((await app.inject({ url: '/acp/ping', headers })).statusCode).toBe(421);
  });
});

describe('the Origin of a request', () => {
  const host = 'Host: localhost:8000';

  it.each(['http://localhost:8000', 'HTTP://LOCALHOST:8000', 'https://localhost:8000'])(
    'may be that of the server’s own pages: %s',
    async (origin) => {
      const served = await local();
      expect((await raw(served, 'GET /agents', host, `Origin: ${origin}`)).status).toBe(200);
    },
  );

  it.each([
    'https://evil.example',
    'http://localhost:3000',
    'http://localhost',
    'null',
    'file://',
    'data:',
    'nonsense',
  ])('is refused with 403 where it is another one, and the error says what to do: %s', async (origin) => {
    const served = await local();
    const answer = await raw(served, 'GET /agents', host, `Origin: ${origin}`);
    expect([answer.status, answer.error.code]).toEqual([403, 'invalid_input']);
    expect(answer.error.message).toContain('--allow-origin');
  });

  it('is checked for streams, and for a cancel, which any page may send without a preflight', async () => {
    const served = await serve([never]);
    const { run_id } = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const evil = 'Origin: https://evil.example';
    const cancel = await raw(served, `POST /runs/${run_id}/cancel`, host, evil, 'Content-Length: 0');
    const stream = await raw(served, `GET /runs/${run_id}/events`, host, evil, 'Accept: text/event-stream');
    const silent = await raw(served, `POST /runs/${run_id}/cancel`, host, 'Sec-Fetch-Site: cross-site');
    expect([cancel.status, stream.status, silent.status]).toEqual([403, 403, 403]);
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
  });

  it('may be that of the public URL, also where a proxy sends another Host, or an allowed one', async () => {
    const options = {
      publicUrl: 'https://agents.example.com/base/',
      allowedHosts: ['node1'],
      allowedOrigins: ['https://app.example.com/'],
    };
    const asked = (origin: string): Promise<number> => statusOf(options, { host: 'node1:8000', origin });
    expect(await asked('https://agents.example.com')).toBe(200);
    expect(await asked('https://app.example.com')).toBe(200);
    expect(await asked('http://app.example.com')).toBe(403);
    expect(await asked('https://app.example.com.evil.example')).toBe(403);
    expect(await statusOf({ allowedOrigins: ['*'] }, { host: 'localhost', origin: 'https://any.example' })).toBe(200);
  });

  it('of a page behind a proxy that terminates TLS is compared by host and port', async () => {
    const options = { allowedHosts: ['agents.example.com'] };
    const asked = (host: string, origin: string): Promise<number> => statusOf(options, { host, origin });
    expect(await asked('agents.example.com', 'https://agents.example.com')).toBe(200);
    expect(await asked('agents.example.com:443', 'https://agents.example.com')).toBe(200);
    expect(await asked('agents.example.com', 'https://agents.example.com:8443')).toBe(403);
  });
});

describe('options of allowed names', () => {
  it.each([
    [{ allowedHosts: ['http://a.example'] }, /^allowedHosts: expected a host name .* got "http:\/\/a\.example"/],
    [{ allowedHosts: ['a.example:8000'] }, /^allowedHosts: expected a host name/],
    [{ allowedHosts: [''] }, /^allowedHosts: expected a host name/],
    [{ allowedOrigins: ['a.example'] }, /^allowedOrigins: expected an origin .* got "a\.example"/],
    [
      { allowedOrigins: ['https://a.example/app'] },
      /^allowedOrigins: expected an origin .* got "https:\/\/a\.example\/app"/,
    ],
  ])('must be valid names: %j', async (options, says) => {
    await expect(createServer({ agents: [agent('a', () => 'ok')], docs: false, ...options })).rejects.toThrow(says);
  });
});
