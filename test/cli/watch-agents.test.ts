import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient, text } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it, type TestContext } from 'vitest';
import { Output } from '../support/output.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';

const says = (name: string, body: string): string =>
  `import { defineAgent } from 'rivulet';\nexport default defineAgent({ name: '${name}', description: 'A ${name}.' }, ${body});\n`;

/** A project whose server watches it. */
async function watching({ onTestFinished }: TestContext, files: Record<string, string>) {
  const { folder, remove } = makeProject(files);
  const server = new RivuletProcess(['serve', '--watch', '--port', '0', '--store', 'memory:'], {}, folder);
  const output = new Output(server.child);
  onTestFinished(async () => {
    await server.stop('SIGKILL');
    remove();
  });
  const client = createClient({ url: await server.url() });
  return {
    server,
    client,
    path: (name: string) => join(folder, name),
    /** As editors do: another file, moved to the place of the old one. */
    write: (name: string, content: string) => {
      writeFileSync(join(folder, '.written'), content);
      renameSync(join(folder, '.written'), join(folder, name));
    },
    /** Resolves when the server has said it. */
    said: (words: string) => output.has(words),
    ask: (agent: string) => lastValueFrom(client.run(agent, 'x').pipe(text())),
  };
}

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

  it('sees a change of what an agent imports, also from outside of the folder, and through others', async (t) => {
    const project = await watching(t, {
      'agents/one.ts': `import { near } from './_near.ts';\n${says('one', '() => near')}`,
      'agents/_near.ts': "import { far } from '../lib/far.js';\nexport const near: string = 'near ' + far;\n",
      'lib/far.ts': "export let far: string = 'far';\n",
    });
    expect(await project.ask('one')).toBe('near far');
    appendFileSync(project.path('lib/far.ts'), "far = 'further';\n");
    await project.said('lib/far.ts has changed');
    expect(await project.ask('one')).toBe('near further');
    project.write('agents/_near.ts', "export const near: string = 'nearer';\n");
    await project.said('agents/_near.ts has changed');
    expect(await project.ask('one')).toBe('nearer');
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

  it('takes in new files and folders, and lets go of agents whose file is gone', async (t) => {
    const project = await watching(t, { 'agents/a.js': says('a', "() => 'a'") });
    project.write('agents/b.ts', says('b', "() => 'b'"));
    await project.said('now hosting a, b');
    mkdirSync(project.path('agents/c'));
    await project.said('agents/c has changed');
    project.write('agents/c/index.ts', says('c', "() => 'c'"));
    await project.said('now hosting a, b, c');
    expect([await project.ask('b'), await project.ask('c')]).toEqual(['b', 'c']);
    rmSync(project.path('agents/a.js'));
    await project.said('now hosting b, c; a is gone');
    await expect(project.ask('a')).rejects.toMatchObject({ status: 404 });
  });

  it('keeps all agents as they were where two would have one name', async (t) => {
    const project = await watching(t, { 'agents/a.js': says('a', "() => 'a'") });
    project.write('agents/b.js', says('a', "() => 'b'"));
    await project.said('the agents stay as they were');
    expect(project.server.err).toBe(
      'rivulet: agents/b.js: agent name "a" is already used by agents/a.js; the agents stay as they were\n',
    );
    expect(await project.ask('a')).toBe('a');
  });

  it('comes up although a file is broken, and ends when it is told to', async (t) => {
    const project = await watching(t, { 'agents/a.js': says('a', "() => 'a'"), 'agents/bad.ts': 'nope;' });
    expect(project.server.err).toMatch(
      /^rivulet: agents\/bad\.ts: does not load: nope is not defined; it is left out\n$/,
    );
    expect(await project.ask('a')).toBe('a');
    expect(await project.server.stop()).toBe(0);
  });
});
