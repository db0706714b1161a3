import { text } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { says, watching } from './watched-project.ts';

// watch-agents.servers.ts has the rest.
describe.concurrent('rivulet serve --watch', { timeout: 60_000 }, () => {
  it('gives new runs the new code, and lets runs that have begun end with the old', async (t) => {
    const project = await watching(t, {
      'agents/slow.ts': says(
        'slow',
        "async function* (_, context) { yield 'old '; await context.await('Go?').forEach(() => {}); yield 'old'; }",
      ),
    });
    const { client } = project;
    const begun = await client.sync('slow', 'x');
    project.write('agents/slow.ts', says('slow', "() => 'new'"));
    await project.said('agents/slow.ts has changed');
    expect(await project.ask('slow')).toBe('new');
    await client.resume(begun.run_id, 'go');
    expect(await lastValueFrom(client.watch(begun.run_id).pipe(text()))).toBe('old \n\nold');
  });

  it('reports a file that is broken, keeps what it held, and goes on when it is mended', async (t) => {
    const project = await watching(t, {
      'agents/a.ts': says('a', "() => 'first'"),
      'agents/b.js': says('b', "() => 'b'"),
    });
    project.write('agents/a.ts', 'export default {;');
    await project.said('agents/a.ts has changed');
    expect(project.server.err).toMatch(
      /^rivulet: agents\/a\.ts: does not load: .*Expected identifier.*; what it held before stays\n$/,
    );
    expect([await project.ask('a'), await project.ask('b')]).toEqual(['first', 'b']);
    project.write('agents/a.ts', says('a', "() => 'second'"));
    await project.said('agents/a.ts has changed');
    expect(await project.ask('a')).toBe('second');
  });
});
