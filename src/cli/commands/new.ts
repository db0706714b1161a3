import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { nameProblem } from '../../core/agent.ts';
import { exit, UsageError } from '../exit-codes.ts';
import { terminal } from '../terminal/terminal.ts';
import { firstAgent } from './first-agent.ts';

/**
 * Writes a first agent and its test. Overwrites no file.
 * @throws UsageError if the name is not valid for an agent, or one of the files exists
 */
export async function newAgent(name: string): Promise<number> {
  const problem = nameProblem(name);
  if (problem !== undefined) throw new UsageError(`"${name}" is not a valid agent name: ${problem}`);
  const files = firstAgent(name);
  const existing = Object.keys(files).find((path) => existsSync(path));
  if (existing !== undefined) throw new UsageError(`${existing} already exists; choose another name, or move it`);
  await mkdir('agents', { recursive: true });
  for (const [path, text] of Object.entries(files)) await writeFile(path, text, { flag: 'wx' });
  terminal.print(await nextSteps(name, Object.keys(files)));
  return exit.completed;
}

/** The command that installs what the agent and its test import, if the project has not got it. */
function installs(packageJson: string): string[] {
  const missing = (name: string): boolean => !packageJson.includes(`"${name}":`);
  const commands = [
    ...(missing('rxjs') ? ['npm install rxjs'] : []),
    ...(missing('vitest') ? ['npm install --save-dev vitest'] : []),
  ];
  return commands.length === 0 ? [] : [`  ${commands.join(' && ')}`];
}

async function nextSteps(name: string, files: string[]): Promise<string> {
  const text = await readFile('package.json', 'utf8').catch(() => '{}');
  return [
    `Wrote ${files.join(' and ')}. Next steps:`,
    '',
    // Without it, Node loads .ts and .js files as CommonJS, and agents are ES modules.
    ...(/"type"\s*:\s*"module"/.test(text) ? [] : ['  npm pkg set type=module']),
    ...installs(text),
    '  npx vitest run                          # runs its test',
    '  npx rivulet serve --watch               # serves it, and reloads it when it changes',
    `  npx rivulet run ${name} 'Good morning'`,
  ].join('\n');
}
