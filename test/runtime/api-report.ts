/**
 * What the package exports, as text: `npm run api` writes it to `test/runtime/api.txt` after a build, and a test fails where
 * the two differ. It is made of the emitted declarations, which have one statement from the left margin to the next.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(import.meta.dirname, '../..');
const entries = {
  rivulet: 'dist/index.d.ts',
  'rivulet/client': 'dist/client/client.d.ts',
  'rivulet/client/ai-sdk': 'dist/client/ai-sdk.d.ts',
  'rivulet/adapters/ai-sdk': 'dist/adapters/ai-sdk.d.ts',
  'rivulet/adapters/langgraph': 'dist/adapters/langgraph.d.ts',
  'rivulet/adapters/openai-agents': 'dist/adapters/openai-agents.d.ts',
  'rivulet/llm': 'dist/llm/tool-loop.d.ts',
  'rivulet/remote': 'dist/remote/remote-agent.d.ts',
  'rivulet/remote/mcp': 'dist/remote/mcp.d.ts',
};
export const reportFile = resolve(import.meta.dirname, 'api.txt');

interface Name {
  readonly file: string;
  readonly name: string;
}

/** One emitted file: what it declares, where its other names come from, and what it exports, by name. */
interface Module {
  readonly declared: Map<string, string[]>;
  readonly imported: Map<string, Name>;
  readonly exported: Map<string, Name>;
}

const modules = new Map<string, Module>();

function moduleOf(file: string): Module {
  const known = modules.get(file);
  if (known !== undefined) return known;
  const module: Module = { declared: new Map(), imported: new Map(), exported: new Map() };
  modules.set(file, module);
  const code = readFileSync(resolve(root, file), 'utf8').replace(/[ \t]*\/\*[\s\S]*?\*\/\n?|^\s*\/\/.*\n/gm, '');
  for (const statement of code.split(/\n(?=[a-z])/)) read(statement.trim(), file, module);
  return module;
}

function read(statement: string, file: string, { declared, imported, exported }: Module): void {
  const [, from] = / from '(\.[^']*)';$/.exec(statement) ?? [];
  const source = from === undefined ? file : relative(root, resolve(root, file, '..', from)).replace(/\.ts$/, '.d.ts');
  const [, keyword] = /^(import|export)(?: type)? [{*]/.exec(statement) ?? [];
  if (keyword !== undefined) {
    if (keyword === 'import' && from === undefined) return;
    if (/ \* from /.test(statement)) {
      for (const [name, origin] of moduleOf(source).exported) exported.set(name, origin);
    }
    for (const one of /\{(.*)\}/s.exec(statement)?.[1]?.split(',') ?? []) {
      const [, name = '', alias = name] = /^\s*(?:type )?(\w+)(?: as (\w+))?/.exec(one) ?? [];
      if (name === '') continue;
      const origin =
        from === undefined ? { file, name } : (moduleOf(source).exported.get(name) ?? { file: source, name });
      (keyword === 'import' ? imported : exported).set(alias, origin);
    }
    return;
  }
  const [, name] =
    /^(?:export )?(?:declare )?(?:abstract )?(?:const|function|class|interface|type) (\w+)/.exec(statement) ?? [];
  if (name === undefined) return;
  declared.set(name, [...(declared.get(name) ?? []), statement]);
  if (statement.startsWith('export')) exported.set(name, { file, name });
}

const keyOf = ({ file, name }: Name): string => `${file}:${name}`;
const declarationsOf = ({ file, name }: Name): string[] => moduleOf(file).declared.get(name) ?? [];

/** The names of this package that a declaration mentions. */
function mentionedBy({ file, name }: Name): Name[] {
  const { declared, imported } = moduleOf(file);
  const code = declarationsOf({ file, name })
    .join('\n')
    .replace(/'[^']*'|"[^"]*"/g, '');
  const words = new Set(code.match(/\b[A-Z]\w*/g));
  return [...words].flatMap((word) => imported.get(word) ?? (declared.has(word) ? [{ file, name: word }] : []));
}

/** Types that an export mentions and no entry exports, as `Mentioned (by Export)`. */
export function unexported(): string[] {
  const all = Object.values(entries).flatMap((file) => [...moduleOf(file).exported.values()]);
  const keys = new Set(all.map(keyOf));
  return all.flatMap((one) =>
    mentionedBy(one)
      .filter((mentioned) => !keys.has(keyOf(mentioned)))
      .map(({ name }) => `${name} (by ${one.name})`),
  );
}

export function report(): string {
  const main = moduleOf(entries.rivulet).exported;
  const sections = Object.entries(entries).map(([entry, file]) => {
    const exports = [...moduleOf(file).exported].sort(([a], [b]) => (a < b ? -1 : 1));
    const texts = exports.flatMap(([name, origin]) => {
      const shared = main.get(name);
      const isSame = file !== entries.rivulet && shared !== undefined && keyOf(shared) === keyOf(origin);
      return isSame ? [`${name}: as in rivulet`] : declarationsOf(origin).map((text) => shortened(plain(text), name));
    });
    return `# ${entry}\n\n${texts.join('\n\n')}\n`;
  });
  return sections.join('\n');
}

/** A declaration without what all of them have. A value is one line: most are schemas. */
function plain(text: string): string {
  const code = text.replace(/^export (declare )?/, '').replaceAll('import("@sinclair/typebox").', '');
  return code.startsWith('const ')
    ? code.replace(/\s+/g, ' ')
    : code.replace(/^ {4,}/gm, (indent) => indent.slice(indent.length / 2));
}

/**
 * A schema in which other schemas of the package stand by their names, the largest first. Of several schemas with one
 * type, the first by name shows it.
 */
function shortened(text: string, name: string): string {
  known ??= schemas();
  const own = known.find((schema) => schema.name === name)?.type;
  return known
    .filter((schema) => (schema.type === own ? schema.name < name : true))
    .reduce((short, schema) => short.replaceAll(schema.type, `typeof ${schema.name}`), text);
}

let known: ReturnType<typeof schemas> | undefined;

const schemas = (): { name: string; type: string }[] =>
  [...moduleOf(entries.rivulet).exported.values()]
    .flatMap((origin) => declarationsOf(origin).map(plain))
    .flatMap((text) => {
      const [, name = '', type = ''] = /^const (\w+): (T(?:Object|Union)<.*>);$/.exec(text) ?? [];
      return type.length > 40 ? [{ name, type }] : [];
    })
    .sort((a, b) => b.type.length - a.type.length);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(reportFile, report());
  console.log(`wrote ${relative(root, reportFile)}`);
}
