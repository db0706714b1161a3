/** The files of a first agent and its test, by path. `rivulet new` and create-rivulet write them. */
export const firstAgent = (name: string): Readonly<Record<string, string>> => ({
  [`agents/${name}.ts`]: agentText(name),
  [`agents/${name}.test.ts`]: testText(name),
});

const agentText = (name: string): string => `import { defineAgent, textOf } from 'rivulet';
import { from } from 'rxjs';

// Each value streams to the readers of the run. An agent may return a promise, an async generator or a string as well.
export default defineAgent({ name: '${name}', description: 'Says hello, word by word.' }, (input) =>
  from(['Hello, ', 'you ', 'said: ', textOf(input)]),
);
`;

const testText = (name: string): string => `import { runAgent } from 'rivulet/testing';
import { expect, it } from 'vitest';
import agent from './${name}.js';

it('greets and repeats the input', async () => {
  const { run, text } = await runAgent(agent, 'a word');
  expect(run.status).toBe('completed');
  expect(text).toBe('Hello, you said: a word');
});
`;
