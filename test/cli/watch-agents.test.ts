import { text } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agentFile } from './server-project.ts';
import { watchedProject } from './watched-project.ts';

// watch-agents.servers.ts has more tests.
describe.concurrent('rivulet serve --watch', () => {
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
});
