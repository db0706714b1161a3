import rivulet from '../../../package.json' with { type: 'json' };
import { type PackageManager, programCommand, scriptCommand, settings } from './package-manager.ts';
import { type Template, versionsOf } from './templates.ts';

/**
 * The files of a new project, by path. This version of Rivulet is tested with the versions in them. `version` is the version
 * of Rivulet, or a file that npm has packed.
 */
export const projectFiles = (
  name: string,
  manager: PackageManager,
  template: Template,
  version = rivulet.version,
): Readonly<Record<string, string>> => ({
  'package.json': json({
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: {
      start: 'rivulet serve',
      dev: 'rivulet serve --watch',
      test: 'vitest run',
      check: 'tsc',
      ...template.scripts,
    },
    dependencies: { rivulet: version, ...versionsOf(['rxjs', ...(template.dependencies ?? [])]) },
    devDependencies: versionsOf(['@types/node', 'typescript', 'vitest', ...(template.devDependencies ?? [])]),
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
      ...(template.folders && { jsx: 'react-jsx', lib: ['es2023', 'dom', 'dom.iterable'] }),
    },
    include: ['agents', ...(template.folders ?? [])],
  }),
  ...template.files,
  ...settings(manager, rivulet.allowScripts),
  '.gitignore': 'node_modules/\ndata/\n.env\n*.log\n',
  'README.md': readme(name, manager, template),
});

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

/** A name for package.json: the folder's, in the characters that npm accepts. */
export const packageName = (folder: string): string =>
  folder
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+|-+$/g, '')
    .slice(0, 214) || 'my-agents';

const readme = (name: string, manager: PackageManager, { agent, folders, files }: Template): string => `# ${name}

Agents on [Rivulet](node_modules/rivulet/README.md).

| Command | Does |
| --- | --- |
| \`${manager.name} install\` | installs the packages |
${'.env.example' in files ? '| `cp .env.example .env` | makes the file for the address, the key and the name of your model |\n' : ''}| \`${scriptCommand(manager, 'dev')}\` | serves \`agents/\` at http://127.0.0.1:8000${folders ? ', and the page at http://127.0.0.1:5173' : ''}, and loads them again when they change |
| \`${programCommand(manager)} rivulet run ${agent} Ada\` | runs the agent \`${agent}\` on the terminal |
| \`${programCommand(manager)} rivulet new NAME\` | adds an agent and its test |
| \`${scriptCommand(manager, 'test')}\` | runs the tests |
| \`${scriptCommand(manager, 'check')}\` | checks the types |
`;
