import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { makeProject } from '../support/project.ts';
import { agentFile } from './server-project.ts';

const dist = resolve(import.meta.dirname, '../../dist');

type Case = [what: string, files: Record<string, string>, says: RegExp];

const cases: Case[] = [
  [
    'a file that does not load',
    { 'agents/bad.ts': 'export default nope;' },
    /^agents\/bad\.ts: does not load: nope is not defined \(agents\/bad\.ts:1:16\)$/,
  ],
  [
    'a file that imports one that throws',
    {
      'agents/bad.ts': "import './_broken.ts';",
      'agents/_broken.ts': "type Lines = {\n  two: string;\n};\n\nthrow new TypeError('broken');",
    },
    /^agents\/bad\.ts: does not load: broken \(agents\/_broken\.ts:5:7\)$/,
  ],
  ['a file that does not parse', { 'agents/bad.ts': 'export default {;' }, /^agents\/bad\.ts: does not load: .*$/],
  [
    'a file that imports a missing package',
    { 'agents/bad.js': "import 'nothing-of-this-name';" },
    /^agents\/bad\.js: does not load: Cannot find package 'nothing-of-this-name'.*$/,
  ],
  [
    'a file without an agent',
    { 'agents/bad.ts': 'export default 5;' },
    /^agents\/bad\.ts: its default export is not an agent; .*$/,
  ],
  [
    'an invalid name',
    { 'agents/bad.ts': agentFile('Bad Name') },
    /^agents\/bad\.ts: does not load: manifest\.name: .* \(agents\/bad\.ts:2:16\)$/,
  ],
  [
    'a name used twice',
    { 'agents/a.js': agentFile('same'), 'agents/b.js': agentFile('same') },
    /^agents\/b\.js: agent name "same" is already used by agents\/a\.js$/,
  ],
  ...['agents/a.ts', 'agents/a.js'].map(
    (file): Case => [
      `${file} of a CommonJS package`,
      { 'package.json': '{"type":"commonjs"}', [file]: agentFile('a') },
      /^agents\/a\.[tj]s: does not load: agents are ES modules, and package\.json has not "type": "module"; run: npm pkg set type=module$/,
    ],
  ),
  ...['export default { port: 1 };', 'const port: number = 1;\nexport default { port };'].map(
    (text): Case => [
      `settings of a CommonJS package: ${text}`,
      { 'package.json': '{}', 'rivulet.config.ts': text },
      /^rivulet\.config\.ts: does not load: settings are ES modules, and package\.json has not "type": "module"; run: npm pkg set type=module$/,
    ],
  ),
  ...['agents/a.ts', 'agents/a.js', 'rivulet.config.ts'].map(
    (file): Case => [
      `an await in ${file} that never settles`,
      { [file]: 'await new Promise(() => {});\nexport default {};' },
      new RegExp(`^${file.replaceAll('.', '\\.')}: does not load: its top-level await never settles$`),
    ],
  ),
  [
    'a missing folder',
    {},
    /^agents: there is no such folder; "npx rivulet new NAME" writes a first agent in agents\/$/,
  ],
  ['a file in place of a folder', { agents: '' }, /^agents: is a file; give its folder, \.$/],
  ['a folder without agents', { 'agents/README.md': '' }, /^agents: contains no agent; .*$/],
];

/** Loads the settings and agents of each folder, one after the other, and prints the error of each. */
const script = `
  import { readSettingsFile } from '${dist}/cli/settings/settings-file.js';
  import { loadAgents } from '${dist}/cli/serving/load-agents.js';
  import { Registry } from '${dist}/engine/agents/registry.js';
  const messages = [];
  for (const folder of process.argv.slice(1)) {
    process.chdir(folder);
    const load = async () => {
      await readSettingsFile(undefined);
      const { hosted, broken } = await loadAgents(['agents']);
      for (const error of broken) throw error;
      new Registry(hosted);
    };
    messages.push(await load().then(() => 'it loads', (error) => error.message));
  }
  console.log(JSON.stringify(messages));
`;

it('names the file of an agent or of settings that cannot be loaded, and the reason, in one line', async (t) => {
  const projects = cases.map(([, files]) => makeProject(files));
  t.onTestFinished(() => {
    for (const { remove } of projects) remove();
  });
  const args = ['--input-type=module', '-e', script, ...projects.map(({ folder }) => folder)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const messages: string[] = JSON.parse(stdout);
  for (const [at, [what, , says]] of cases.entries()) expect(messages[at], what).toMatch(says);
});
