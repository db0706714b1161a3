import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { AgentError, createServer, json } from 'rivulet';
import { createClient } from 'rivulet/client';
import { concat, ignoreElements, map, of, throwError } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agent, askOnce, echo } from '../support/agents.ts';
import { rivulet } from '../support/command.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { listenOn } from '../support/ports.ts';
import { RivuletProcess } from '../support/process.ts';

const fails = agent('fails', () =>
  concat(
    of('so far '),
    throwError(() => new AgentError('too_late', 'The shop is shut.')),
  ),
);

const report = agent('report', () => [
  { metadata: { kind: 'trajectory', message: 'Looking it up.', tool_name: 'search', tool_input: { q: 'tea' } } },
  'Tea is older than coffee.',
  { metadata: { kind: 'citation', start_index: 0, end_index: 3, title: 'Tea', url: 'https://tea.example' } },
  { name: '../../tea.csv', content_type: 'text/csv', content: 'a,b\n' },
  { name: 'tea.csv', content_type: 'text/csv', content: 'YSxi', content_encoding: 'base64' },
  { content_type: 'application/json', content: '{}' },
  { name: 'far.png', content_type: 'image/png', content_url: 'https://tea.example/far.png' },
]);

const given = agent('given', (input) => JSON.stringify(input.flatMap(({ parts }) => parts)));
const session = agent('session', (_, context) => context.session.history.pipe(map(({ role }) => `${role} `)));

const schema = { type: 'object', properties: { guests: { type: 'integer', minimum: 1 } }, required: ['guests'] };
const form = agent('form', (_, context) =>
  context.await('A table?', { schema }).pipe(map(({ message }) => message.parts[0]?.content ?? '')),
);

const order = agent('order', (_, context) =>
  context.await({ role: 'agent', parts: [{ content: 'Shall I?' }, json({ amount: 3 })] }).pipe(ignoreElements()),
);

let app: FastifyInstance;
let env: Record<string, string>;
let folder: string;
const headers: string[] = [];
const channels: string[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rivulet-run-'));
  app = await createServer({ agents: [echo, fails, report, given, session, askOnce, form, order], retry: 5 });
  app.addHook('onRequest', async (request) => {
    if (request.method === 'POST') channels.push(String(request.headers['rivulet-channel']));
    if (request.headers['x-key'] !== undefined) headers.push(String(request.headers['x-key']));
  });
  env = { RIVULET_URL: await app.listen({ port: 0, host: '127.0.0.1' }) };
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await app.close();
});

const client = () => createClient({ url: env.RIVULET_URL ?? '' });
const idIn = (text: string): string => /run ([0-9a-f-]{36})/.exec(text)?.[1] ?? '';

describe.concurrent('rivulet run', () => {
  it('prints only the answer on stdout', async () => {
    expect(await rivulet(['run', 'echo', 'Hello'], { env })).toEqual({
      code: 0,
      out: 'Hello\n',
      err: expect.stringMatching(/^run [0-9a-f-]{36}, session [0-9a-f-]{36}\nCompleted \[.+, 1 part\]\.\n$/),
    });
  });

  it('reads the text from stdin where it is -', async () => {
    expect((await rivulet(['run', 'echo', '-'], { env, input: 'line\nand line\n' })).out).toBe('line\nand line\n');
  });

  it('sends files as parts with name and type: UTF-8 as text, other bytes as base64', async () => {
    const [picture, unknown] = [join(folder, 'dot.png'), join(folder, 'x.of-no-type')];
    writeFileSync(picture, Buffer.from([0, 255]));
    writeFileSync(unknown, 'x');
    const { out } = await rivulet(['run', 'given', 'look', '--file', picture, '--file', unknown], { env });
    expect(JSON.parse(out)).toEqual([
      { content_type: 'text/plain', content: 'look' },
      { name: 'dot.png', content_type: 'image/png', content_encoding: 'base64', content: 'AP8=' },
      { name: 'x.of-no-type', content_type: 'text/plain', content: 'x' },
    ]);
  });

  it('continues a session', async () => {
    const id = '0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11';
    await client().sync('echo', 'one', { session_id: id });
    expect((await rivulet(['run', 'session', 'two', '--session', id], { env })).out).toBe('user agent/echo \n');
  });

  it('prints steps, sources and artifacts on stderr, and saves artifacts inside the folder of --out only', async () => {
    const out = join(folder, 'deep/got');
    const ended = await rivulet(['run', 'report', 'x', '--out', out], { env });
    expect(ended.out).toBe('Tea is older than coffee.\n');
    expect(ended.err.split('\n').slice(1)).toEqual([
      'Looking it up. search {"q":"tea"}',
      `../../tea.csv (text/csv, 4 bytes) saved as ${out}/tea.csv`,
      `tea.csv (text/csv, 3 bytes) saved as ${out}/tea-2.csv`,
      `data (application/json, 2 bytes) saved as ${out}/part.json`,
      'far.png (image/png, https://tea.example/far.png)',
      '[1] Tea, https://tea.example, “Tea”',
      expect.stringMatching(/^Completed \[.+, 7 parts\]\.$/),
      '',
    ]);
    expect(readdirSync(out).sort()).toEqual(['part.json', 'tea-2.csv', 'tea.csv']);
    expect(readFileSync(join(out, 'tea-2.csv'), 'utf8')).toBe('a,b');
  });

  it('prints events as lines of JSON with --json', async () => {
    const { out, err } = await rivulet(['run', 'echo', 'Hello', '--json'], { env });
    const events = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { events: kept } = await (await fetch(`${env.RIVULET_URL}/runs/${events[0].run.run_id}/events`)).json();
    expect(events).toEqual(kept);
    expect(err).toBe('');
  });

  it('saves artifacts with --json, too', async () => {
    const into = join(folder, 'with-json');
    const { code, out, err } = await rivulet(['run', 'report', 'x', '--json', '--out', into], { env });
    expect(code).toBe(0);
    expect(readdirSync(into).sort()).toEqual(['part.json', 'tea-2.csv', 'tea.csv']);
    expect(err).toContain(`saved as ${into}/tea.csv`);
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).type)
        .at(-1),
    ).toBe('run.completed');
  });

  it('prints no colours into a pipe, unless FORCE_COLOR is set', async () => {
    // The first test checks that nothing is coloured otherwise.
    const forced = await rivulet(['run', 'echo', 'Hello'], { env: { ...env, FORCE_COLOR: '1' } });
    expect(forced.err).toContain('\u001b[2m');
  });

  it('sends the headers of --header, which takes precedence over the environment', async () => {
    const keyed = { ...env, RIVULET_HEADERS: 'X-Key: from, the env\nX-Other: 2' };
    await rivulet(['agents'], { env: keyed });
    await rivulet(['agents', '--header', 'X-Key: given'], { env: keyed });
    expect(headers.sort()).toEqual(['from, the env', 'given']);
  });

  it('exits with 1 if the run fails, and prints the reason', async () => {
    const { code, out, err } = await rivulet(['run', 'fails', 'x'], { env });
    expect([code, out]).toEqual([1, 'so far \n']);
    expect(err).toMatch(/The run failed: The shop is shut\. \(too_late\) \[.+, 1 part\]\n$/);
  });

  it.for<[string, string[], RegExp]>([
    ['no input', ['run', 'echo'], /^rivulet: the run has no input/],
    ['a missing file', ['run', 'echo', '--file', 'nowhere'], /^rivulet: nowhere: there is no such file\n$/],
    ['a folder in place of a file', ['run', 'echo', '--file', '/dev'], /^rivulet: \/dev: is a folder; give a file\n$/],
    [
      'a folder that cannot be made',
      ['run', 'echo', 'x', '--out', '/dev/null/x'],
      /^rivulet: --out \/dev\/null\/x: is a file, or is inside of one; give a folder\n$/,
    ],
    ['an unknown agent', ['run', 'ecko', 'x'], /^rivulet: There is no agent ecko.* Did you mean echo\?\n$/],
    ['an unknown option', ['run', 'echo', 'x', '--quick'], /unknown option '--quick'/],
    ['an invalid header', ['run', 'echo', 'x', '--header', 'secret'], /It has to be 'Name: value'/],
  ])('exits with 2 and one line that names the problem: %s', async ([, args, says]) => {
    const { code, err } = await rivulet(args, { env });
    expect(err).toMatch(says);
    expect(code).toBe(2);
  });

  it('exits with 3 at once if no server listens, and prints what to do', async () => {
    const { code, err } = await rivulet(['run', 'echo', 'x', '--url', 'http://127.0.0.1:11999']);
    expect(code).toBe(3);
    expect(err).toMatch(/^rivulet: No connection: connect ECONNREFUSED 127\.0\.0\.1:11999\nIs the server running\?/);
  });

  it('exits with 3 if another kind of server answers', async () => {
    const other = createTcpServer((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<p>hi'));
    const url = await listenOn(other);
    const { code, err } = await rivulet(['agents', '--url', url]);
    other.close();
    expect(code).toBe(3);
    expect(err).toContain('is it a Rivulet server?');
  });

  it('exits with 3 if the events are malformed', async () => {
    const other = createTcpServer((socket) => {
      const body = 'id: 1\ndata: null\n\n';
      const head = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${body.length}`;
      socket.end(`${head}\r\n\r\n${body}`);
    });
    const url = await listenOn(other);
    const ended = await rivulet(['watch', '0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11', '--url', url]);
    other.close();
    expect(ended).toEqual({
      code: 3,
      out: '',
      err: 'rivulet: The server sent something unknown (null); is it a Rivulet server?\n',
    });
  });

  it('never prints the password of a URL', async () => {
    const wrong = await rivulet(['agents', '--url', 'ftp://me:secret@host/']);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('--url') });
    const url = 'http://me:secret@127.0.0.1:11999';
    const { run_id } = await client().sync('ask', 'x');
    const server = new URL(env.RIVULET_URL ?? '');
    server.username = 'me';
    server.password = 'secret';
    const ends = [
      wrong,
      await rivulet(['agents', '--url', url]),
      await rivulet(['watch', run_id, '--url', server.href]),
    ];
    expect(ends.map(({ code }) => code)).toEqual([2, 3, 4]);
    for (const { out, err } of ends) expect(out + err).not.toContain('secret');
  });

  it('exits with 4 if the run awaits a reply without a terminal, and prints how to reply', async () => {
    const { code, out, err } = await rivulet(['run', 'ask', 'x'], { env });
    expect([code, out]).toEqual([4, 'before. \n']);
    expect(err).toContain(`Well?\nThe run awaits a reply: npx rivulet resume ${idIn(err)} 'your answer' --url`);
    const resumed = await rivulet(['resume', idIn(err), 'yes'], { env });
    expect(resumed).toMatchObject({ code: 0, out: 'You said yes.\n' });
  });

  it('prints the JSON of a question below its text', async () => {
    const { err } = await rivulet(['run', 'order', 'x'], { env });
    expect(err).toContain('Shall I?\n\n{"amount":3}\nThe run awaits a reply');
  });

  it('prints what a question with a schema expects, and refuses another reply before it is sent', async () => {
    const { code, err } = await rivulet(['run', 'form', 'x'], { env });
    expect(code).toBe(4);
    expect(err).toContain(`npx rivulet resume ${idIn(err)} '{…}' --url`);
    expect(err).toContain('  guests: whole number, 1 or more, required\nJSON Schema: {"type":"object"');
    const refused = await rivulet(['resume', idIn(err), 'yes'], { env });
    expect(refused.code).toBe(2);
    expect(refused.err).toMatch(
      /^rivulet: the question expects another reply: .* JSON object\.\n {2}guests: whole number/,
    );
    const asked = await rivulet(['resume', idIn(err)], { env });
    expect(asked).toMatchObject({ code: 4, err: expect.stringContaining('A table?') });
    const resumed = await rivulet(['resume', idIn(err), '{"guests":2}'], { env });
    expect(resumed).toMatchObject({ code: 0, out: '{"guests":2}\n' });
    const again = await rivulet(['resume', idIn(err)], { env });
    expect(again).toMatchObject({ code: 2, err: expect.stringContaining('is completed; only an awaiting run') });
  });

  it('names the channel of its replies', async () => {
    const { run_id } = await client().sync('ask', 'x');
    await rivulet(['resume', run_id, 'yes'], { env });
    expect(channels).toContain('cli');
  });

  it('does not prompt for a reply that was given', async () => {
    const { run_id } = await client().sync('ask', 'x');
    await client().resume(run_id, 'yes');
    const watched = await rivulet(['watch', run_id], { env });
    expect(watched).toMatchObject({ code: 0, out: 'before. \n\nYou said yes.\n' });
    const { code, err } = await rivulet(['resume', run_id, 'yes'], { env });
    expect(code).toBe(2);
    expect(err).toMatch(/is completed; only an awaiting run/);
  });

  it('prints that the connection is lost, reconnects, and prints no event twice', async () => {
    const { run_id } = await client().sync('report', 'x');
    const proxy = await CuttingProxy.open(env.RIVULET_URL ?? '', [900]);
    const { code, out, err } = await rivulet(['watch', run_id, '--url', proxy.url]);
    await proxy.close();
    expect([code, out]).toEqual([0, 'Tea is older than coffee.\n']);
    expect(err).toMatch(/^Connection lost \(.*\); retrying in 0\.\d s, 1 of 6\.$/m);
  });

  it('gives up after --retries attempts, and prints how to resume', async () => {
    const { run_id } = await client().sync('report', 'x');
    const proxy = await CuttingProxy.open(env.RIVULET_URL ?? '', [900, 0, 0]);
    const { code, err } = await rivulet(['watch', run_id, '--url', proxy.url, '--retries', '2']);
    await proxy.close();
    expect(code).toBe(3);
    expect(err).toMatch(/2 of 2\.\n.*To resume watching: npx rivulet watch [0-9a-f-]+ --after [1-9]/s);
  });

  it('exits quietly when the reader of its output closes the pipe', async () => {
    const { run_id } = await client().sync('report', 'x');
    const watching = new RivuletProcess(['watch', run_id, '--json'], env);
    watching.child.stdout?.destroy();
    expect(await watching.ended()).toBe(0);
    expect(watching.err).toBe('');
  });
});
