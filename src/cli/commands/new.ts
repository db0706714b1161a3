import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nameProblem } from '../../core/agent.ts';
import { exit } from '../exit-codes.ts';
import { terminal } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

/**
 * Writes a first agent and its test. Overwrites nothing.
 * @throws UsageError where the name is no agent's, or one of the files is there
 */
export async function newAgent(name: string): Promise<number> {
  const problem = nameProblem(name);
  if (problem !== undefined) throw new UsageError(`"${name}" is no name for an agent: ${problem}`);
  const files = {
    [join('agents', `${name}.ts`)]: agentText(name),
    [join('agents', `${name}.test.ts`)]: testText(name),
  };
  const there = Object.keys(files).find((path) => existsSync(path));
  if (there !== undefined) throw new UsageError(`${there} is there already; take another name, or move it away`);
  await mkdir('agents', { recursive: true });
  for (const [path, text] of Object.entries(files)) await writeFile(path, text, { flag: 'wx' });
  terminal.print(await nextSteps(name, Object.keys(files)));
  return exit.completed;
}

const agentText = (name: string): string => `import { defineAgent } from 'rivulet';
import { from } from 'rxjs';

// What it emits goes to whoever reads the run, as it comes. Also possible: a promise, an async generator, a plain string.
export default defineAgent({ name: '${name}', description: 'Says hello, word by word.' }, (input) => {
  const text = input.flatMap(({ parts }) => parts.map(({ content }) => content ?? '')).join(' ');
  return from(['Hello, ', 'you ', 'said: ', text]);
});
`;

const testText = (name: string): string => `import { createServer } from 'rivulet';
import { createClient } from 'rivulet/client';
import { expect, it } from 'vitest';
import agent from './${name}.ts';

it('says hello to what it is told', async () => {
  const server = await createServer({ agents: [agent] });
  try {
    const client = createClient({ url: await server.listen({ port: 0 }) });
    const run = await client.sync('${name}', 'a word');
    expect(run.status).toBe('completed');
    expect(run.output[0]?.parts[0]?.content).toBe('Hello, you said: a word');
  } finally {
    await server.close();
  }
});
`;

async function nextSteps(name: string, files: string[]): Promise<string> {
  const text = await readFile('package.json', 'utf8').catch(() => '{}');
  return [
    `Wrote ${files.join(' and ')}. What comes next:`,
    '',
    // Node takes a package's files for CommonJS otherwise, and agents are modules.
    ...(/"type"\s*:\s*"module"/.test(text) ? [] : ['  npm pkg set type=module']),
    '  npm install rxjs && npm install --save-dev vitest',
    '  npx vitest run                          # its test',
    '  npx rivulet serve --watch               # hosts it, and loads it again when you change it',
    `  npx rivulet run ${name} 'Good morning'`,
  ].join('\n');
}
