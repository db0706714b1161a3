import { afterAll, describe, expect, it } from 'vitest';
import { codeProject, typeErrorsIn } from '../docs/project.ts';

// What the TypeScript compiler says of functions that are no agents.

const wrong: readonly [code: string, named: string][] = [
  ['() => 1', 'NotAgentOutput<1>'],
  ['() => {}', 'NotAgentOutput<void>'],
  ['async () => 1', 'NotAgentOutput<number>'],
  ['() => [1, 2]', 'NotAgentOutput<number>'],
  ['() => interval(1)', 'NotAgentOutput<number>'],
  ['() => of({ content: 1 })', 'NotAgentOutput<{ content: number; }>'],
  ["function* () { yield 'a'; yield 1; }", 'NotAgentOutput<1>'],
  ["async function* () { yield 'a'; yield { foo: 1 }; }", 'NotAgentOutput<{ foo: number; }>'],
  ['async function* (_, context) { yield context.run_id; yield 1; }', 'NotAgentOutput<1>'],
  ['async () => interval(1)', 'NotAgentOutput<number>'],
];

const head =
  "import { defineAgent } from 'rivulet';\nimport { interval, of } from 'rxjs';\n\nexport const sources = [interval, of];\n";
const agentOf = (code: string): string =>
  `export default defineAgent({ name: 'a', description: 'An agent.' }, ${code});\n`;
const project = codeProject(new Map(wrong.map(([code], index) => [`agent-${index}.ts`, head + agentOf(code)])));
afterAll(() => project.remove());
const errors = typeErrorsIn(project);

describe('a function that emits what is no output', () => {
  it.each(wrong.map(([code, named], index) => ({ code, named, index })))(
    'is refused in few lines that name it: $code',
    async ({ code, named, index }) => {
      const messages = (await errors).split(/^(?=\S)/m).filter((message) => message.includes(`agent-${index}.ts`));
      expect(messages).toHaveLength(1);
      const lines = messages[0]?.trimEnd().split('\n') ?? [];
      expect(lines.length).toBeLessThanOrEqual(4);
      expect(lines[0]).toMatch(/error TS(2322|2345): (Type|Argument of type) '.*' is not assignable to /);
      expect(lines.at(-1)).toContain(named);
      // The types of a context and of its messages are long where a function has parameters.
      if (!code.includes('context')) expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(280);
    },
  );
});
