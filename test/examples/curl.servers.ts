import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { createServer } from 'rivulet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import echo from '../../agents/echo.ts';

const bash = (base: string) =>
  promisify(execFile)('bash', ['examples/curl.sh'], {
    env: { ...process.env, BASE: base, NO_PROXY: '127.0.0.1' },
    timeout: 200_000,
  });

let app: FastifyInstance;
let sections: Map<string, string>;

describe('curl.sh', () => {
  // It throws unless the script exits with 0.
  beforeAll(async () => {
    app = await createServer({ agents: [echo, approve] });
    const { stdout } = await bash(await app.listen({ host: '127.0.0.1', port: 0 }));
    const [, ...parts] = stdout.split('\n== ');
    sections = new Map(parts.map((part) => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n')).trim()]));
  });
  afterAll(() => app.close());

  /** The output under the title with this beginning. */
  const under = (title: string): string =>
    [...sections].find(([one]) => one.startsWith(title))?.[1] ?? `nothing under ${title}`;

  it('checks the server and lists its agents', () => {
    expect(under('Liveness check')).toBe('{}');
    expect(under('List the agents')).toMatch(/^approve: .+\necho: .+$/);
  });

  it('runs an agent in each mode', () => {
    expect(JSON.parse(under('Run and wait'))).toMatchObject({
      status: 'completed',
      output: [{ parts: [{ content: 'Hello' }] }],
    });
    expect(JSON.parse(under('Run and poll'))).toMatchObject({
      status: 'completed',
      output: [{ parts: [{ content: 'Take your time' }] }],
    });
    expect(under('Run and stream')).toMatch(/^retry: \d+\ndata: \{"type":"run.created".*\nid: 1\n/);
    expect(under('Run and stream')).toContain('"type":"run.completed"');
  });

  it('resumes a stream in the middle', () => {
    expect(under('Resume the stream').match(/^id: \d+$/gm)).toEqual(['id: 4', 'id: 5', 'id: 6']);
  });

  it('resumes a run that awaits', () => {
    expect(under('A run that awaits')).toContain('Shall I?');
    expect(JSON.parse(under('Reply to it'))).toMatchObject({ status: 'completed' });
    expect(under('Reply to it')).toContain('Done: paint the fence');
  });

  it('cancels a run', () => {
    expect(under('Cancel a run')).toBe('cancelling\ncancelled');
  });

  it('reads a session and the messages of its URLs', () => {
    const [session = '', , first = ''] = under('A session').split('\n');
    expect(JSON.parse(session).history).toHaveLength(4);
    expect(JSON.parse(first)).toMatchObject({ role: 'user', parts: [{ content: 'First' }] });
  });

  it('fails with the server’s error if an agent is missing', async () => {
    const other = await createServer({ agents: [approve] });
    const base = await other.listen({ host: '127.0.0.1', port: 0 });
    await expect(bash(base)).rejects.toMatchObject({
      code: 22,
      stdout: expect.stringContaining('There is no agent echo'),
    });
    await other.close();
  });
});
