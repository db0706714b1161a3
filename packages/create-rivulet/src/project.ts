import rivulet from '../../../package.json' with { type: 'json' };
import { firstAgent } from '../../../src/cli/first-agent.ts';
import { type PackageManager, programCommand, scriptCommand, settings } from './package-manager.ts';

const agent = 'hello';

/**
 * The files of a new project, by path. This version of Rivulet is tested with the versions in them. `version` is the version
 * of Rivulet, or a file that npm has packed.
 */
export const projectFiles = (
  name: string,
  manager: PackageManager,
  version = rivulet.version,
): Readonly<Record<string, string>> => ({
  'package.json': json({
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: { start: 'rivulet serve', dev: 'rivulet serve --watch', test: 'vitest run', check: 'tsc' },
    dependencies: { rivulet: version, rxjs: rivulet.dependencies.rxjs },
    devDependencies: {
      '@types/node': rivulet.devDependencies['@types/node'],
      typescript: rivulet.devDependencies.typescript,
      vitest: rivulet.devDependencies.vitest,
    },
    ...(manager.name === 'npm' && { allowScripts: rivulet.allowScripts }),
  }),
  'tsconfig.json': json({
    compilerOptions: {
      target: 'es2023',
      module: 'nodenext',
      types: ['node'],
      strict: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
      noEmit: true,
      allowImportingTsExtensions: true,
    },
    include: ['agents'],
  }),
  ...firstAgent(agent),
  ...settings(manager, rivulet.allowScripts),
  '.gitignore': 'node_modules/\ndata/\n.env\n*.log\n',
  'README.md': readme(name, manager),
});

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

/** A name for package.json: the folder's, in the characters that npm accepts. */
export const packageName = (folder: string): string =>
  folder
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+|-+$/g, '')
    .slice(0, 214) || 'my-agents';

const readme = (name: string, manager: PackageManager): string => `# ${name}

Agents on [Rivulet](node_modules/rivulet/README.md).

| Command | Does |
| --- | --- |
| \`${manager.name} install\` | installs the packages |
| \`${scriptCommand(manager, 'dev')}\` | serves \`agents/\` at http://127.0.0.1:8000, and loads them again when they change |
| \`${programCommand(manager)} rivulet run ${agent} Ada\` | runs the agent \`${agent}\` on the terminal |
| \`${programCommand(manager)} rivulet new NAME\` | adds an agent and its test |
| \`${scriptCommand(manager, 'test')}\` | runs the tests |
| \`${scriptCommand(manager, 'check')}\` | checks the types |
`;
