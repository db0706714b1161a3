import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { makeApiKey } from '../../src/http/auth/api-key.ts';
import { recordOf } from '../../src/http/auth/key-records.ts';
import type { AgentManifest } from '../../src/index.ts';
import { type ClientCode, type ClientTarget, clientsOf } from '../../src/playground/conversation/agent-clients.tsx';
import { protocolNames } from '../../src/server/protocols.ts';
import { codeProject, typeErrorsIn } from '../docs/project.ts';
import { agent } from '../support/agents.ts';
import { listen } from '../support/serve.ts';

const answer = 'The Rhine is longer.';
const guide = agent('guide', () => answer);
const { key } = makeApiKey();
const open = await listen([guide]);
const secured = await listen([guide], { auth: { keys: [recordOf(key, { principal: 'alice' })] } });

interface Row {
  readonly protocol: string;
  readonly code: ClientCode;
  readonly target: ClientTarget;
}

async function rowsOf(server: string, token?: string): Promise<Row[]> {
  const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  const { addresses = [] }: AgentManifest = await (await fetch(`${server}/agents/guide`, { headers })).json();
  return addresses.flatMap(({ protocol, url }) =>
    clientsOf(protocol).code.map((code) => ({
      protocol,
      code,
      target: { server, url, agent: 'guide', tool: 'guide', token },
    })),
  );
}

const all = [...(await rowsOf(open.url)), ...(await rowsOf(secured.url, key))];
const named = (...languages: readonly ClientCode['language'][]): [string, Row][] =>
  all
    .filter(({ code }) => languages.includes(code.language))
    .map((row) => [`${row.protocol}, ${row.code.title}${row.target.token === undefined ? '' : ', with a token'}`, row]);
const fileOf = ({ protocol, code, target }: Row): string =>
  `${protocol}-${target.token === undefined ? 'open' : 'secured'}.${code.language}`;

const typed = named('ts', 'tsx').map(([, row]) => row);
const project = codeProject(new Map(typed.map((row) => [fileOf(row), row.code.write(row.target)])));
// Beside the other tests, since it takes as long as all of them.
const typeErrors = typeErrorsIn(project);
const run = promisify(execFile);

afterAll(async () => {
  project.remove();
  await Promise.all([open.app.close(), secured.app.close()]);
});

describe('the code for the clients of a protocol', () => {
  it('is there for each protocol, and for none that the page does not know', () => {
    for (const protocol of ['acp', ...protocolNames]) {
      expect([protocol, clientsOf(protocol).code.length]).toEqual([protocol, expect.toSatisfy((length) => length > 0)]);
      expect(clientsOf(protocol).name).not.toBe(protocol);
    }
    for (const unknown of ['gopher', 'constructor']) expect(clientsOf(unknown)).toEqual({ name: unknown, code: [] });
  });

  it('has no type errors', async () => {
    expect(await typeErrors).toBe('');
  });

  it.each(named('ts'))('gets the answer of the agent: %s', async (_, row) => {
    const printed: string[] = [];
    const log = vi.spyOn(console, 'log').mockImplementation((...values) => void printed.push(JSON.stringify(values)));
    try {
      await import(join(project.folder, fileOf(row)));
      await expect.poll(() => printed.join('')).toContain(answer);
    } finally {
      log.mockRestore();
    }
  });

  it.each(named('bash'))('gets the answer of the agent: %s', async (_, { code, target }) => {
    const { stdout } = await run('bash', ['-c', code.write(target)], { env: { ...process.env, NO_PROXY: '*' } });
    expect(stdout).toContain(answer);
  });

  it.each(named('json'))(
    'is JSON with the address and the token: %s',
    (_, { code, target: { url, token, ...rest } }) => {
      const configuration: unknown = JSON.parse(code.write({ ...rest, url, token }));
      const headers = token !== undefined && { headers: { Authorization: `Bearer ${token}` } };
      expect(configuration).toEqual({ mcpServers: { rivulet: { type: 'http', url, ...headers } } });
    },
  );

  // OpenAI's library for Python is not installed; the one for TypeScript sends the same requests.
  const hasPython = spawnSync('python3', ['--version']).error === undefined;
  it.skipIf(!hasPython).each(named('python'))('is Python: %s', async (_, { code, target }) => {
    await run('python3', ['-c', 'import ast, sys; ast.parse(sys.argv[1])', code.write(target)]);
  });

  it('keeps quotes of a name inside its texts', () => {
    const url = 'http://127.0.0.1/`$(id)\'"\\';
    for (const { code } of all.filter(({ code }) => code.language === 'ts')) {
      const text = code.write({ server: url, url, agent: 'guide', tool: 'guide' });
      expect(text).toContain(JSON.stringify(url));
    }
  });
});
