import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Output } from '../support/output.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { scrape } from '../support/scrape.ts';
import { agentFile, metricsOf } from './server-project.ts';
import { watchedProject } from './watched-project.ts';

describe.concurrent('rivulet serve --watch', () => {
  it('reloads agents when a direct or indirect import changes, also outside of the folder', async (t) => {
    const project = await watchedProject(t, {
      'agents/one.ts': `import { near } from './_near.ts';\n${agentFile('one', '() => near')}`,
      'agents/_near.ts': "import { far } from '../lib/far.js';\nexport const near: string = 'near ' + far;\n",
      'lib/far.ts': "export let far: string = 'far';\n",
    });
    expect(await project.ask('one')).toBe('near far');
    appendFileSync(project.path('lib/far.ts'), "far = 'further';\n");
    await project.printed('lib/far.ts has changed');
    expect(await project.ask('one')).toBe('near further');
    project.write('agents/_near.ts', "export const near: string = 'nearer';\n");
    await project.printed('agents/_near.ts has changed');
    expect(await project.ask('one')).toBe('nearer');
  });

  it('reports a file that does not load, keeps its previous version, and loads it when it is fixed', async (t) => {
    const project = await watchedProject(t, {
      'agents/a.ts': agentFile('a', "() => 'first'"),
      'agents/b.js': agentFile('b', "() => 'b'"),
    });
    project.write('agents/a.ts', 'export default {;');
    await project.printed('agents/a.ts has changed');
    expect(project.server.err).toMatch(
      /^rivulet: agents\/a\.ts: does not load: .*Expected identifier.*; its previous version stays\n$/,
    );
    expect([await project.ask('a'), await project.ask('b')]).toEqual(['first', 'b']);
    project.write('agents/a.ts', agentFile('a', "() => 'second'"));
    await project.printed('agents/a.ts has changed');
    expect(await project.ask('a')).toBe('second');
  });

  it('adds agents of new files and folders, and removes agents whose file is removed', async (t) => {
    const project = await watchedProject(t, { 'agents/a.js': agentFile('a', "() => 'a'") });
    project.write('agents/b.ts', agentFile('b', "() => 'b'"));
    await project.printed('now hosting a, b');
    mkdirSync(project.path('agents/c'));
    await project.printed('agents/c has changed');
    project.write('agents/c/index.ts', agentFile('c', "() => 'c'"));
    await project.printed('now hosting a, b, c');
    expect([await project.ask('b'), await project.ask('c')]).toEqual(['b', 'c']);
    rmSync(project.path('agents/a.js'));
    await project.printed('now hosting b, c; a was removed');
    await expect(project.ask('a')).rejects.toMatchObject({ status: 404 });
  });

  it('reads .env again when it changes, and loads the agents with its variables', async (t) => {
    const project = await watchedProject(t, {
      '.env': 'WORD=first\nRIVULET_WEBHOOK_SECRET=0123456789012345678901234567890123456789\n',
      'agents/a.js': `const { WORD, RIVULET_WEBHOOK_SECRET } = process.env;\n${agentFile('a', "() => WORD + ' ' + RIVULET_WEBHOOK_SECRET")}`,
    });
    expect(await project.ask('a')).toBe('first undefined');
    project.write('.env', 'WORD=second\nRIVULET_WEBHOOK_SECRET=0123456789012345678901234567890123456789\n');
    await project.printed('.env has changed; now hosting a');
    expect(await project.ask('a')).toBe('second undefined');
    project.write('.env', '# none\n');
    await project.printed('.env has changed; now hosting a');
    expect(await project.ask('a')).toBe('undefined undefined');
  });

  it('changes no agent if two would have the same name', async (t) => {
    const project = await watchedProject(t, { 'agents/a.js': agentFile('a', "() => 'a'") });
    project.write('agents/b.js', agentFile('a', "() => 'b'"));
    await project.printed('the agents were not changed');
    expect(project.server.err).toBe(
      'rivulet: agents/b.js: agent name "a" is already used by agents/a.js; the agents were not changed\n',
    );
    expect(await project.ask('a')).toBe('a');
  });

  it('starts although a file does not load, and stops on SIGTERM', async (t) => {
    const project = await watchedProject(t, { 'agents/a.js': agentFile('a', "() => 'a'"), 'agents/bad.ts': 'nope;' });
    expect(project.server.err).toMatch(
      /^rivulet: agents\/bad\.ts: does not load: nope is not defined \(agents\/bad\.ts:1:\d+\); the file is skipped\n$/,
    );
    expect(await project.ask('a')).toBe('a');
    expect(await project.server.stop()).toBe(0);
  });

  it('counts the files that do not load, until they are mended', async (t) => {
    const files = { 'agents/a.js': agentFile('a', "() => 'a'"), 'agents/bad.js': 'nope;' };
    const project = await watchedProject(t, files, ['--metrics-port', '0']);
    const metrics = await metricsOf(project.server);
    const broken = async () => (await scrape(metrics)).value('rivulet_agent_files_broken');
    expect(await broken()).toBe(1);
    project.write('agents/bad.js', agentFile('bad', "() => 'mended'"));
    await project.printed('now hosting a, bad');
    expect(await broken()).toBe(0);
    project.write('agents/bad.js', 'nope;');
    await project.printed('bad.js has changed');
    await t.expect.poll(broken, { timeout: 60_000 }).toBe(1);
    expect(await project.ask('bad')).toBe('mended');
  });

  it('runs new code in new runs, and the old code in runs that have started', async (t) => {
    const project = await watchedProject(t, {
      'agents/slow.ts': agentFile(
        'slow',
        "async function* (_, context) { yield 'old '; await context.await('Go?').forEach(() => {}); yield 'old'; }",
      ),
    });
    const { client } = project;
    const started = await client.sync('slow', 'x');
    project.write('agents/slow.ts', agentFile('slow', "() => 'new'"));
    await project.printed('agents/slow.ts has changed');
    expect(await project.ask('slow')).toBe('new');
    await client.resume(started.run_id, 'go');
    expect(await lastValueFrom(client.watch(started.run_id).pipe(text()))).toBe('old \n\nold');
  });

  const waiting = "console.log('it waits');\nawait new Promise(() => {});\n";

  it('leaves a module whose top-level await never settles, at the start and in a reload, when it changes', async (t) => {
    const { folder, remove } = makeProject({ 'agents/a.js': waiting });
    const server = new RivuletProcess(['serve', '--watch', '--port', '0', '--store', 'memory:'], {}, folder);
    t.onTestFinished(async () => {
      await server.stop('SIGKILL');
      remove();
    });
    const output = new Output(server.child);
    for (const [name, ready] of [
      ['first', 'curl'],
      ['second', 'now hosting second; first was removed'],
    ] as const) {
      if (name === 'second') writeFileSync(join(folder, 'agents/a.js'), waiting);
      await output.has('it waits');
      writeFileSync(join(folder, 'agents/a.js'), agentFile(name, "() => 'done'"));
      await output.has('agents/a.js: had not loaded when a file changed');
      await output.has(ready);
    }
  });
});
