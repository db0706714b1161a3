import { execFile, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpRequest, toCurl, toPython, toTypeScript } from '../../src/playground/inspector/request-code.ts';

const run = promisify(execFile);

/** What is hard to quote in a shell, in TypeScript or in Python. */
const hard = [
  `it's "quoted" \\ and \\'both\\'`,
  'two\nlines\r\n\ttab',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell would replace it.
  '$HOME `id` $(id) ${HOME} !! %s %(x)s {0} \\n \\u0041',
  'Grüße, 河, 🌊 \u2028\u2029\u0000\u001b[31m \ud800',
  '@file',
  '-X DELETE',
];
const value = { hard, true: true, false: false, null: null, deep: [[], {}, [{ a: [1, -0.5, 1e21] }]] };

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

const { execPath } = process;
const languages = [
  { language: 'curl', program: 'curl', execute: ['bash', '-c'], write: toCurl },
  {
    language: 'TypeScript',
    program: execPath,
    execute: [execPath, '--input-type=module', '--eval'],
    write: toTypeScript,
  },
  { language: 'Python', program: 'python3', execute: ['python3', '-c'], write: toPython },
];
/** On CI the machine has to have all programs. */
const isHere = ({ language, program }: (typeof languages)[number]): boolean => {
  if (process.env.CI !== undefined || spawnSync(program, ['--version']).error === undefined) return true;
  console.warn(`SKIPPED: requests as ${language}, because ${program} is not installed.`);
  return false;
};

describe.each(languages.filter(isHere))('a request as $language', ({ execute: [command = '', ...options], write }) => {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request;
    received.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    response.end('the answer, 河\n');
  });
  let url = '';
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  const execute = async (request: HttpRequest): Promise<string> => {
    const { stdout } = await run(command, [...options, write(request)], { env: { ...process.env, NO_PROXY: '*' } });
    return stdout;
  };

  it('sends the same request when it is executed', async () => {
    const body = JSON.stringify(value);
    const headers = [
      ['accept', 'text/event-stream'],
      ['content-type', 'application/json'],
      ['x-quoted', `it's "here" \\ $HOME`],
    ] as const;
    const printed = await execute({ method: 'POST', url: `${url}/runs?a=it%27s&b=[1-3]{x,y}`, headers, body });
    const [got] = received.splice(0);
    expect(got).toMatchObject({
      method: 'POST',
      url: '/runs?a=it%27s&b=[1-3]{x,y}',
      headers: Object.fromEntries(headers),
    });
    expect(JSON.parse(got?.body ?? '')).toEqual(value);
    expect(printed).toContain('the answer, 河');
  });

  it('of GET has no body', async () => {
    expect(await execute({ method: 'GET', url: `${url}/ping`, headers: [], body: undefined })).toContain(
      'the answer, 河',
    );
    expect(received.splice(0)).toMatchObject([{ method: 'GET', url: '/ping', body: '' }]);
  });

  it('sends a body that is no JSON as it is', async () => {
    const body = `{"__proto__": 'it's "no" JSON\n}`;
    await execute({ method: 'POST', url: `${url}/`, headers: [['content-type', 'text/plain']], body });
    expect(received.splice(0)).toMatchObject([{ body }]);
  });

  it('reads a long body from a file', () => {
    const body = JSON.stringify('x'.repeat(70_000));
    const code = write({ method: 'POST', url, headers: [], body });
    expect(code).toContain('body.json');
    expect(code.length).toBeLessThan(500);
  });
});
