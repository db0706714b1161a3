/// <reference types="vite/client" />
import page from '../../../examples/ui/ai-sdk.tsx?raw';
import rivulet from '../../../package.json' with { type: 'json' };
import { firstAgent } from '../../../src/cli/commands/first-agent.ts';

/** What a project begins with. */
export interface Template {
  readonly description: string;
  /** The name of its agent. */
  readonly agent: string;
  /** Its own files, by path. */
  readonly files: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
  /** Names of packages. The versions are those that Rivulet is tested with. */
  readonly dependencies?: readonly Package[];
  readonly devDependencies?: readonly Package[];
  /** Further folders of TypeScript. */
  readonly folders?: readonly string[];
}

type Package = keyof typeof rivulet.dependencies | keyof typeof rivulet.devDependencies;

/** The version of a package that Rivulet is tested with. */
export const versionsOf = (packages: readonly Package[]): Record<string, string> => {
  const known: Record<string, string> = { ...rivulet.devDependencies, ...rivulet.dependencies };
  return Object.fromEntries(packages.map((name) => [name, known[name] ?? '*']));
};

const assistant = `import { appendFile } from 'node:fs/promises';
import { Type } from '@sinclair/typebox';
import { defineAgent } from 'rivulet';
import { chatModel, tool, toolLoop } from 'rivulet/llm';

const clock = tool({
  name: 'clock',
  description: 'Tells the time in a time zone.',
  input: Type.Object({ zone: Type.String({ description: 'such as Europe/Oslo' }) }),
  run: ({ zone }) => new Date().toLocaleString('en-GB', { timeZone: zone }),
});

// A person is asked before each call.
const note = tool({
  name: 'note',
  description: 'Writes a line into notes.txt.',
  approval: true,
  input: Type.Object({ text: Type.String() }),
  run: async ({ text }) => {
    await appendFile('notes.txt', \`\${text}\\n\`);
    return 'It is written.';
  },
});

// Any server with OpenAI's chat completions: see .env.example.
const model = chatModel(() => ({ model: process.env.OPENAI_MODEL ?? 'gpt-5-mini' }));

export default defineAgent(
  { name: 'assistant', description: 'Answers, tells the time, and takes notes after asking.' },
  toolLoop({ model, instructions: 'Be brief.', tools: [clock, note] }),
  { durable: true },
);
`;

const assistantTest = `import { fakeModel, runAgent } from 'rivulet/testing';
import { afterAll, expect, it } from 'vitest';
import assistant from './assistant.js';

const model = await fakeModel([[{ tool: 'note', input: { text: 'Buy milk' } }], 'Then I will not.']);
process.env.OPENAI_BASE_URL = model.url;
afterAll(() => model.close());

// The first call of a model loads its library, which takes seconds on a busy machine.
it('asks before it takes a note', { timeout: 30_000 }, async () => {
  const { questions, text } = await runAgent(assistant, 'Note: buy milk', { answers: [false] });
  expect(questions).toHaveLength(1);
  expect(text).toContain('Then I will not.');
});
`;

const environment = `# Any server with OpenAI's chat completions. For an Ollama: http://127.0.0.1:11434/v1, and a model that it has.
OPENAI_BASE_URL=https://api.openai.com/v1
OPENAI_API_KEY=
OPENAI_MODEL=gpt-5-mini
`;

const viteConfig = `import { defineConfig, type ProxyOptions } from 'vite';

/** Ends the stream of a server that has crashed. Vite's proxy alone would hold it open. */
const configure: ProxyOptions['configure'] = (proxy) => {
  proxy.on('proxyRes', (answer, _request, response) => {
    answer.on('close', () => answer.complete || response.destroy());
  });
};

// The page and the agents need the same origin. The server accepts requests of its own origin only, so the proxy sends that.
const target = 'http://127.0.0.1:8000';
const proxied = { target, changeOrigin: true, headers: { origin: target }, configure };

export default defineConfig({
  build: { outDir: '../dist', emptyOutDir: true },
  server: { proxy: { '/runs': proxied, '/ai/': proxied } },
});
`;

const html = `<!doctype html>
<html lang="en">
  <meta charset="utf-8" />
  <meta name="viewport" content="width=device-width" />
  <title>Chat</title>
  <div id="app"></div>
  <script type="module" src="./main.tsx"></script>
</html>
`;

const llm: Template = {
  description: 'an agent of a language model, with tools and an approval',
  agent: 'assistant',
  files: {
    'agents/assistant.ts': assistant,
    'agents/assistant.test.ts': assistantTest,
    '.env.example': environment,
  },
  dependencies: ['@sinclair/typebox', 'openai'],
};

export const templates = {
  hello: { description: 'an agent without a model', agent: 'hello', files: firstAgent('hello') },
  llm,
  'chat-ui': {
    ...llm,
    description: 'the same, and a chat page for it',
    files: {
      ...llm.files,
      'page/index.html': html,
      'page/main.tsx': page.replace("?? 'echo'", "?? 'assistant'"),
      'page/vite.config.ts': viteConfig,
    },
    scripts: {
      'dev:agents': 'rivulet serve --watch',
      'dev:page': 'vite page',
      dev: 'concurrently -k "npm:dev:*"',
      build: 'vite build page',
    },
    devDependencies: [
      '@ai-sdk/react',
      '@types/react',
      '@types/react-dom',
      'ai',
      'concurrently',
      'react',
      'react-dom',
      'vite',
    ],
    folders: ['page'],
  },
} satisfies Record<string, Template>;

export type TemplateName = keyof typeof templates;

export const isTemplate = (name: string): name is TemplateName => Object.hasOwn(templates, name);
