import { once } from 'node:events';
import { createServer } from 'rivulet';
import { createClient } from 'rivulet/client';
import { describe, expect, it } from 'vitest';
import { agent, askOnce, echo, never } from '../support/agents.ts';
import { rivulet } from '../support/command.ts';
import { RivuletProcess } from '../support/process.ts';
import { serveAll } from '../support/serve.ts';

const fails = agent('fails', () => Promise.reject(new Error('No\nway.')));

const { url } = await serveAll([echo, fails, askOnce, never]);
const env = { RIVULET_URL: url };
const ids: string[] = [];
// One after the other: `runs` lists the newest first.
for (const name of ['fails', 'ask', 'echo']) ids.unshift((await createClient({ url }).sync(name, 'x')).run_id);

describe.concurrent('rivulet', () => {
  it('agents prints a table of agents with their success rate and time', async () => {
    const { code, out } = await rivulet(['agents'], { env });
    expect(code).toBe(0);
    const lines = out.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^NAME +SUCCESS +TIME +DESCRIPTION$/);
    expect(lines[1]).toMatch(/^ask +- +- +The test's ask\.$/);
    expect(lines[2]).toMatch(/^echo +100% +\d\.\d s +The test's echo\.$/);
    expect(lines[3]).toMatch(/^fails +0% +\d\.\d s +The test's fails\.$/);
  });

  it('agents says where there are none, and prints nothing on stdout', async ({ onTestFinished }) => {
    const none = await createServer({ agents: [] });
    onTestFinished(() => none.close());
    const url = await none.listen({ port: 0, host: '127.0.0.1' });
    const { code, out, err } = await rivulet(['agents'], { env: { RIVULET_URL: url } });
    expect([code, out, err]).toEqual([0, '', 'The server hosts no agent, or none that you may use.\n']);
  });

  it('agents NAME prints the addresses of one for the clients of each protocol', async () => {
    const { code, out } = await rivulet(['agents', 'echo'], { env });
    const [head, row, ...addresses] = out.split('\n').filter((line) => line !== '');
    expect([code, head, row]).toEqual([0, expect.stringMatching(/^NAME/), expect.stringMatching(/^echo /)]);
    const { addresses: served = [] } = await createClient({ url: env.RIVULET_URL }).agent('echo');
    expect(addresses.map((line) => line.split(/ {2,}/))).toEqual(served.map(({ protocol, url }) => [protocol, url]));
    const typo = await rivulet(['agents', 'ecko'], { env });
    expect([typo.code, typo.err]).toEqual([2, expect.stringContaining('Did you mean echo?')]);
  });

  it('agents --json prints manifests as lines', async () => {
    const { out } = await rivulet(['agents', '--json'], { env });
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).name),
    ).toEqual(['ask', 'echo', 'fails', 'never']);
  });

  it('runs prints a table, newest first, with age, time, errors and questions', async () => {
    const { code, out } = await rivulet(['runs', '--limit', '3', '--status', 'failed'], { env });
    expect(code).toBe(0);
    const [head, row] = out.split('\n');
    expect(head).toMatch(/^RUN +AGENT +STATUS +CREATED +TIME +ABOUT$/);
    expect(row).toMatch(new RegExp(`^${ids[2]}  fails +failed +\\S+ .*(x: )?No way\\.$`));
    const asking = await rivulet(['runs', '--agent', 'ask'], { env });
    expect(asking.out.split('\n')[1]).toMatch(new RegExp(`^${ids[1]}  ask +awaiting +.* - +(x: )?Well\\?$`));
  });

  it('runs suggests an agent, where there is none of that name', async () => {
    const { code, err } = await rivulet(['runs', '--agent', 'ecko'], { env });
    expect([code, err]).toEqual([
      0,
      expect.stringContaining('There is no agent ecko at this server. Did you mean echo?\n'),
    ]);
  });

  it('suggests a command for one that is mistyped', async () => {
    const { code, err } = await rivulet(['agnets'], { env });
    expect([code, err]).toEqual([2, expect.stringContaining('Did you mean agents?')]);
  });

  it('runs prints at most --limit runs, over several pages', async () => {
    const client = createClient({ url: env.RIVULET_URL });
    const session_id = '0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a12';
    await Promise.all(Array.from({ length: 120 }, () => client.start('echo', 'x', { session_id })));
    const { out } = await rivulet(['runs', '--json', '--limit', '110', '--session', session_id], { env });
    const runs = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).run_id);
    expect(new Set(runs).size).toBe(110);
    expect(runs).toEqual(runs.toSorted().reverse());
  });

  it('runs --watch prints the newest runs, then each change of status, until Ctrl-C', async () => {
    const client = createClient({ url: env.RIVULET_URL });
    const session_id = '0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a13';
    const first = await client.start('never', 'x', { session_id });
    const watching = new RivuletProcess(['runs', '--watch', '--session', session_id], env);
    const until = async (text: RegExp): Promise<void> => {
      while (!text.test(watching.out)) await once(watching.child.stdout ?? watching.child, 'data');
    };
    await until(new RegExp(`^RUN .*\n${first.run_id}  never +(created|in-progress) `));
    await client.cancel(first.run_id);
    await until(new RegExp(`\n${first.run_id}  never +cancelled `));
    const { run_id } = await client.sync('echo', 'x', { session_id });
    await until(new RegExp(`\n${run_id}  echo +completed `));
    await watching.stop('SIGINT');
    expect(watching.err).toBe('');
  });

  it('cancel cancels a run', async () => {
    const client = createClient({ url: env.RIVULET_URL });
    const { run_id } = await client.start('never', 'x');
    expect(await rivulet(['cancel', run_id], { env })).toMatchObject({
      code: 0,
      out: `Run ${run_id} is cancelling.\n`,
    });
    const { code, err } = await rivulet(['watch', run_id], { env });
    expect([code, err]).toEqual([5, expect.stringMatching(/^The run was cancelled\. \[.+, 0 parts\]\n$/)]);
  });

  it('watch --after prints the events after a number, or nothing if there are none', async () => {
    const failed = ids[2] ?? '';
    const rest = await rivulet(['watch', failed, '--after', '2', '--json'], { env });
    expect(JSON.parse(rest.out).type).toBe('run.failed');
    expect(await rivulet(['watch', failed, '--after', '3'], { env })).toEqual({ code: 1, out: '', err: '' });
  });
});
