import { once } from 'node:events';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { Worker } from 'node:worker_threads';
import Fastify, { type FastifyInstance, type RequestPayload } from 'fastify';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { checkJsonSize } from '../../src/http/limits/json-size.ts';
import { rivulet } from '../../src/index.ts';
import { agent, echo } from '../support/agents.ts';
import { processorTime } from '../support/processor-time.ts';
import { apiOnly, ask, type Served, serveApi, shared } from '../support/serve.ts';

const quiet = agent('quiet', () => 'ok');
const many = (count: number, text: string): string => `${text},`.repeat(count).slice(0, -1);
const named = (count: number): string => Array.from({ length: count }, (_, n) => `"k${n}":0`).join(',');
const body = (input: string, more = ''): string => `{"agent_name":"quiet","input":[${input}]${more}}`;

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Posts from another thread, so that only the server blocks this one. */
class Sender {
  readonly #worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const { request } = require('node:http');
     parentPort.on('message', ({ url, body, headers }) => {
       const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
         let text = '';
         response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
         response.on('end', () => parentPort.postMessage({ status: response.statusCode, text }));
       });
       sent.on('error', (error) => parentPort.postMessage({ status: 0, text: error.message }));
       sent.end(body);
     });`,
    { eval: true },
  );

  constructor() {
    afterAll(async () => void (await this.#worker.terminate()));
  }

  post({ url }: Served, text: string, headers: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve) => {
      this.#worker.once('message', resolve);
      const all = { 'content-type': 'application/json', ...headers };
      this.#worker.postMessage({ url: `${url}/runs`, body: text, headers: all });
    });
  }
}

// All of them fit into 10 MiB; without limits, some blocked the server for seconds to minutes.
const bombs: [what: string, text: string, status: number, says: RegExp][] = [
  ['20,000 messages', body(many(20_000, '{"parts":[]}')), 413, /more than 20000 JSON values/],
  ['740,000 messages', body(many(740_000, '{"parts":[]}')), 413, /more than 20000 JSON values/],
  ['3.4 million parts', body(`{"parts":[${many(3_400_000, '{}')}]}`), 413, /more than 20000 JSON values/],
  ['700,000 unknown keys', body('{"parts":[]}', `,${named(700_000)}`), 413, /object of the body has more than 1000/],
  ['5 million levels', body(`{"x":${'['.repeat(5_000_000)}${']'.repeat(5_000_000)}}`), 400, /deeper than 100 levels/],
  [
    '1,001 messages',
    body(many(1_001, '{"parts":[]}')),
    422,
    /^input: expected array length to be less or equal to 1000/,
  ],
];
const largest: [what: string, text: string][] = [
  ['1,000 messages', body(many(1_000, '{"parts":[]}'))],
  ['9,900 parts', body(`{"parts":[${many(9_900, '{"content":"a"}')}]}`)],
  ['19,000 unknown keys', body(`{"parts":[],"x":[${many(20, `{${named(950)}}`)}]}`)],
];

/**
 * Milliseconds on the processor, of both threads. The least of up to three rounds, because the compiler and the garbage
 * collector work in some of them as well.
 */
async function leastTime(work: (round: number) => Promise<void>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3 && !(least < 1_000); round += 1) {
    const before = processorTime();
    await work(round);
    least = Math.min(least, processorTime() - before);
  }
  return least;
}

describe('the size of a body', () => {
  const server = shared([quiet], apiOnly);
  const sender = new Sender();

  it.each(bombs)('is limited, and the error names the limit: %s', async (what, text, status, says) => {
    const served = await server();
    await served.get('/ping');
    const least = await leastTime(async (round) => {
      const answer = await sender.post(served, text, { 'idempotency-key': `${what} ${round}` });
      expect(answer.status).toBe(status);
      expect(JSON.parse(answer.text).message).toMatch(says);
    });
    // Without the limits, 1.5 seconds and more.
    expect(least).toBeLessThan(1_000);
  });

  it.each(largest)('allows bodies that are handled quickly, with an Idempotency-Key: %s', async (what, text) => {
    const served = await server();
    const least = await leastTime(async (round) => {
      const answer = await sender.post(served, text, { 'idempotency-key': `${what} ${round}` });
      const again = await sender.post(served, text, { 'idempotency-key': `${what} ${round}` });
      expect([answer.status, again.status]).toEqual([200, 200]);
      expect(JSON.parse(again.text).run_id).toBe(JSON.parse(answer.text).run_id);
    });
    expect(least).toBeLessThan(1_000);
  });

  it('has configurable limits, in values and in bytes', async () => {
    const served = await serveApi([echo], { bodyValues: 10, bodyLimit: 200 });
    expect((await served.post('/runs', ask('echo'))).status).toBe(200);
    const wide = await served.post('/runs', ask('echo', 'a', { x: [1, 2, 3, 4, 5, 6] }));
    expect([wide.status, (await wide.json()).message]).toEqual([413, expect.stringContaining('more than 10 JSON')]);
    const long = await served.post('/runs', ask('echo', 'x'.repeat(300)));
    expect([long.status, (await long.json()).message]).toEqual([413, expect.stringContaining('larger')]);
  });

  it.each([
    ['body_too_deep', '['.repeat(101)],
    ['too_many_values', `[${many(20_001, '0')}`],
    ['too_many_members', `{${named(1_001)}`],
  ])('is checked before the body is parsed: %s, also where it is no JSON', async (reason, text) => {
    const { app } = await server();
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    const refusalOf = async (payload: string): Promise<unknown> => {
      const response = await app.inject({ method: 'POST', url: '/runs', payload });
      return response.json().data.reason;
    };
    expect(await refusalOf(text)).toBe(reason);
    expect(await refusalOf('[')).toBe('body_not_json');
    const parsed = parse.mock.calls.map(([first]) => first);
    expect([parsed.includes(text), parsed.includes('[')]).toEqual([false, true]);
  });

  it('is also limited for chunks without a length', async () => {
    const served = await serveApi([echo], { bodyLimit: 1_000 });
    const pieces = new ReadableStream({
      start(controller) {
        for (let n = 0; n < 3; n += 1) controller.enqueue(new TextEncoder().encode(' '.repeat(500)));
        controller.close();
      },
    });
    const headers = { 'content-type': 'application/json' };
    const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body: pieces, duplex: 'half' };
    expect((await fetch(`${served.url}/runs`, init)).status).toBe(413);
  });

  it('is that of the text itself: a Content-Encoding is refused with the reason', async () => {
    const served = await serveApi([echo]);
    for (const encoding of ['gzip', 'br, gzip', 'x']) {
      const response = await served.post('/runs', ask('echo'), { 'content-encoding': encoding });
      expect(response.status).toBe(415);
      expect((await response.json()).message).toContain(`without Content-Encoding; got ${encoding}`);
    }
    expect((await served.post('/runs', ask('echo'), { 'content-encoding': 'Identity' })).status).toBe(200);
  });
});

describe('the type of a body', () => {
  it.each([
    ['application/json; charset=utf-16', 415],
    ['application/json;charset="latin1"', 415],
    ['application/json; profile=x; charset=iso-8859-1', 415],
    ['application/json-seq', 415],
    ['application/json-patch+json', 415],
    ['application/merge-patch+json', 415],
    ['application/json', 200],
    ['application/json; charset=UTF-8', 200],
    ['application/json;charset="utf8"; profile=x', 200],
    ['application/vnd.example+json', 200],
  ])('%s is answered with %i', async (type, status) => {
    const served = await serveApi([echo]);
    const response = await served.post('/runs', ask('echo'), { 'content-type': type });
    expect(response.status).toBe(status);
    if (status === 415) expect((await response.json()).message).toBe(`Send application/json in UTF-8; got ${type}.`);
  });
});

describe('a client that still sends a body that is refused', () => {
  const large = 'a'.repeat(20_000);
  it.each([
    ['too large', 'application/json', 413],
    ['of another type', 'text/plain', 415],
  ])('gets the answer, and keeps its connection: a body %s', async (_what, type, status) => {
    const served = await serveApi([echo], { bodyLimit: 10_000 });
    const { hostname, port } = new URL(served.url);
    const socket = connect(Number(port), hostname).setEncoding('utf8');
    onTestFinished(() => void socket.destroy());
    const head = [`Host: ${hostname}:${port}`, `Content-Type: ${type}`, `Content-Length: ${large.length}`];
    socket.write(`POST /runs HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
    const [refusal] = await once(socket, 'data');
    expect(refusal).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    socket.write(`${large}GET /ping HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
    const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
  });
});

describe('a body whose bytes are not UTF-8', () => {
  const [before, after] = JSON.stringify(ask('echo', '|')).split('|');
  const post = async (character: readonly number[]) => {
    const { app } = await serveApi([echo]);
    const payload = Buffer.concat([Buffer.from(`${before}`), Buffer.from(character), Buffer.from(`${after}`)]);
    return app.inject({ method: 'POST', url: '/runs', headers: { 'content-type': 'application/json' }, payload });
  };

  it.each([
    ['half a character', [0xc3]],
    ['a letter of Latin-1', [0xe9, 0x74]],
    ['half a surrogate pair', [0xed, 0xa0, 0x80]],
  ])('is refused with 400: %s', async (_what, character) => {
    const answer = await post(character);
    expect(answer.statusCode).toBe(400);
    expect(answer.json().message).toBe('The body is not JSON: it has bytes that are not UTF-8.');
  });

  it('is none with a whole character', async () => {
    expect((await post([0xc3, 0xa9])).statusCode).toBe(200);
  });
});

describe('a number that JSON cannot hold', () => {
  const post = async (number: string) => {
    const served = await serveApi([echo]);
    const payload = JSON.stringify(ask('echo', 'a 1e999')).replace(/\}$/, `,"mode":"sync","later":[{"n":${number}}]}`);
    const headers = { 'content-type': 'application/json' };
    return (await served.app.inject({ method: 'POST', url: '/runs', headers, payload })).statusCode;
  };

  it.each(['1e999', '-1E+400', '9'.repeat(400), `${'9'.repeat(250)}e99`])('is refused with 400: %s', async (number) => {
    expect(await post(number)).toBe(400);
  });

  it.each(['1e308', '1e-999', '9'.repeat(300)])('is none of these: %s', async (number) => {
    expect(await post(number)).toBe(200);
  });
});

describe('JSON text that is measured before it is parsed', () => {
  const tricky = String.raw`{"a,[{":"\"[[[\\","b":["\\\\","\u005b,",{"c":[]}],"ü川":"🌊,"}`;

  const fits = (text: string, values: number): boolean => {
    try {
      checkJsonSize(text, values);
      return true;
    } catch {
      return false;
    }
  };

  it('counts no brackets and commas in strings', () => {
    // The root, four lists and objects, four commas.
    expect([fits(tricky, 9), fits(tricky, 8)]).toEqual([true, false]);
  });

  it('may have 100 levels, objects of 1,000 members, and lists up to the limit of values', () => {
    const nested = (levels: number): string => '[{"a":'.repeat(levels / 2);
    expect([fits(nested(100), 1e6), fits(nested(102), 1e6)]).toEqual([true, false]);
    expect([fits(`{${named(1_000)}}`, 1e6), fits(`{${named(1_001)}}`, 1e6)]).toEqual([true, false]);
    expect([fits(`[${many(5_000, '0')}]`, 5_001), fits(`[${many(5_001, '0')}]`, 5_001)]).toEqual([true, false]);
    expect(fits(`[${many(300, `{${named(999)}}`)}]`, 1e6)).toBe(true);
  });

  it('is measured quickly where it is one long text', async () => {
    const text = `"${'a, [b'.repeat(2_000_000)}"`;
    const least = await leastTime(async () => checkJsonSize(text, 1));
    // It takes some 30 ms.
    expect(least).toBeLessThan(1_000);
  });

  it('is left to the parser where it is invalid', () => {
    expect(fits(']}]}]', 1)).toBe(true);
    expect(fits('"\\', 1)).toBe(true);
  });
});

describe('a body that a hook of the app has replaced', () => {
  const payload = { agent_name: 'quiet', input: [{ parts: [{ content: 'a' }] }] };
  const serveWith = async (replace: (payload: RequestPayload) => RequestPayload): Promise<FastifyInstance> => {
    const app = Fastify();
    onTestFinished(() => app.close());
    app.addHook('preParsing', async (_request, _reply, original) => replace(original));
    await app.register(rivulet, { ...apiOnly, agents: [quiet] });
    return app;
  };

  it('may fail after its end, when the run has its request', async () => {
    const failing = new PassThrough({ autoDestroy: false });
    const failed = new Promise<void>((resolve) => {
      failing.once('end', () => setImmediate(() => failing.destroy(new Error('too late'))));
      failing.once('close', resolve);
    });
    const app = await serveWith((original) => original.pipe(failing));
    expect((await app.inject({ method: 'POST', url: '/runs', payload })).statusCode).toBe(200);
    await failed;
  });

  it('is answered 400 where it fails before its end', async () => {
    const app = await serveWith(() => {
      const failing = new PassThrough();
      failing.write('{"agent_name":');
      failing.once('data', () => failing.destroy(new Error('too early')));
      return failing;
    });
    const response = await app.inject({ method: 'POST', url: '/runs', payload });
    expect([response.statusCode, response.json().message]).toEqual([400, 'The body was cut short.']);
  });
});
