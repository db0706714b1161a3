import { join } from 'node:path';
import { type Agent, createServer, isSettled, type Run } from 'rivulet';
import { createClient } from 'rivulet/client';
import { afterAll, describe, expect, it, vi } from 'vitest';
import approve from '../../agents/approve.ts';
import echo from '../../agents/echo.ts';
import { Registry } from '../../src/engine/agents/registry.ts';
import { startLlm } from '../agents/llm.ts';
import { eventually } from '../support/eventually.ts';
import { textOf } from '../support/serve.ts';
import { type Block, blocks, inLanguage, missingLines, runs } from './blocks.ts';
import { docsModel } from './model.ts';
import { docsProject, pathOf, typeErrorsIn } from './project.ts';

const llm = await startLlm(docsModel);
process.env.OPENAI_BASE_URL = llm.url;

// The blocks have the server's address in them, so their agents come to a server that listens already.
const bundled = [echo, approve].map((agent) => ({ agent, source: 'agents' }));
const registry = new Registry(bundled);
const app = await createServer({ agents: registry });
const url = await app.listen({ host: '127.0.0.1', port: 0 });
const client = createClient({ url });

const project = docsProject(url);
// Beside the other tests, since it takes as long as all of them.
const typeErrors = typeErrorsIn(project);
const load = (block: Block): Promise<{ default?: Agent }> => import(join(project.folder, pathOf(block)));

const code = inLanguage('ts');
const isAgent = ({ text }: Block): boolean => /^export default defineAgent\(/m.test(text);
const isTest = ({ text }: Block): boolean => /from 'vitest'/.test(text);
/** What needs a page is run by test/docs/ui.browser.ts. */
const ofUi = ({ text }: Block): boolean => /from 'react'/.test(text);

const agents: { block: Block; agent: Agent }[] = [];
for (const block of code.filter(isAgent)) {
  const { default: agent } = await load(block);
  if (agent !== undefined) agents.push({ block, agent });
}
registry.replace([...bundled, ...agents.map(({ block, agent }) => ({ agent, source: block.place }))]);

afterAll(async () => {
  await app.close();
  await llm.close();
  project.remove();
  delete process.env.OPENAI_BASE_URL;
});

describe('agents in README and docs', () => {
  it.each(agents.map(({ block, agent }) => [block.place, agent.manifest.name, block] as const))(
    '%s: %s answers',
    async (_, name, block) => {
      const [said = ['say', 'Hello'], ...steps] = stepsOf(block.marks.get('say'));
      let run: Run = await client.sync(name, said[1]);
      for (const [step, value] of steps) {
        if (step === 'reply') {
          await client.resume(run.run_id, value);
          run = await settled(run.run_id);
        } else expect(`${textOf(run)}${JSON.stringify(run)}`).toContain(value);
      }
      if (!block.marks.get('say')?.includes('"failed"')) expect(['completed', 'awaiting']).toContain(run.status);
    },
  );
});

/** `say: Hi | reply: yes | expect: Done.` as pairs. */
const stepsOf = (mark: string | undefined): [string, string][] =>
  mark === undefined
    ? []
    : `say: ${mark}`.split(' | ').map((step) => [step.slice(0, step.indexOf(':')), step.slice(step.indexOf(':') + 2)]);

/** The run when it is final, or asks the next question. */
const settled = (run_id: string): Promise<Run> =>
  eventually(async () => {
    const run = await client.get(run_id);
    if (!isSettled(run.status)) throw new Error(`the run is ${run.status}`);
    return run;
  });

describe('programs in README and docs', () => {
  const programs = code.filter((block) => !isAgent(block) && !isTest(block) && !ofUi(block));
  it.each(programs.map((block) => [block.place, block] as const))('%s runs', async (_, block) => {
    let printed = '';
    const log = vi.spyOn(console, 'log').mockImplementation((...values) => {
      printed += `${values.map(shown).join(' ')}\n`;
    });
    const write = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
      printed += chunk;
      return true;
    });
    try {
      await load(block);
      const { output } = block;
      if (output !== undefined) await expect.poll(() => missingLines(output.text, printed)).toEqual([]);
    } finally {
      log.mockRestore();
      write.mockRestore();
    }
  });
});

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

for (const block of code.filter(isTest)) {
  describe(`the test at ${block.place}`, async () => {
    await load(block);
  });
}

it('TypeScript in README and docs has no type errors', async () => {
  expect(await typeErrors).toBe('');
});

describe('blocks that no test runs', () => {
  it('say why', () => {
    const left = blocks.filter((block) => !runs(block));
    const reasons = left.map(
      ({ place, marks }) => `${place}  ${marks.get('not run') ?? `pending: ${marks.get('pending')}`}`,
    );
    if (reasons.length > 0) console.info(`Not run:\n  ${reasons.join('\n  ')}`);
    expect(reasons.filter((reason) => reason.trim().endsWith(':'))).toEqual([]);
  });

  it('are of no language but those that the tests know', () => {
    const known = ['ts', 'tsx', 'vue', 'html', 'sh', 'python', 'json', 'yaml', 'http', 'text', 'mermaid'];
    const unknown = blocks.filter(({ language }) => !known.includes(language));
    expect(unknown.map(({ place, language }) => `${place} ${language}`)).toEqual([]);
  });
});
