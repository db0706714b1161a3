import { appendFileSync, mkdirSync, rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { says, watching } from './watched-project.ts';

describe.concurrent('rivulet serve --watch', { timeout: 120_000 }, () => {
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
