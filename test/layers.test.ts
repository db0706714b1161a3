import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const src = resolve(import.meta.dirname, '../src');

/** What a run is: values on the wire, and rules without input or output. */
const rules = ['core', 'schema'];
/** The lowest rooms of the engine. `base` is the files beside its rooms. */
const base = ['engine/base', 'engine/agents', 'engine/store', 'engine/time', ...rules];
const reading = ['engine/changes', 'engine/log', ...base];
const running = ['engine/runs', 'engine/execution', 'engine/dispatch', 'engine/webhooks', ...reading];
/** What stands behind a server: each of these implements a port of `core/ports`. */
const behind = ['stores', 'quotas', 'tracing'];

/** The rooms that each room may import; an arrow that is not listed points up. */
const rooms: Record<string, string[]> = {
  schema: [],
  core: ['schema'],
  'engine/time': [],
  'engine/agents': rules,
  'engine/store': rules,
  'engine/dispatch': ['engine/time', ...rules],
  'engine/base': ['engine/store', ...rules],
  'engine/log': base,
  'engine/changes': ['engine/log', ...base],
  'engine/execution': ['engine/log', ...base],
  'engine/runs': ['engine/execution', 'engine/dispatch', 'engine/log', 'engine/webhooks', ...base],
  'engine/webhooks': base,
  'engine/cluster': running,
  // The entries of the engine (`engine.ts`, `access.ts`) and its parts (`services.ts`).
  engine: ['engine/cluster', ...running],
  // The one way to get a connection to PostgreSQL.
  postgres: [],
  stores: ['postgres', ...rules],
  // Quotas take the URL of a store.
  quotas: ['stores', 'postgres', ...rules],
  // The port of traces, over OpenTelemetry.
  tracing: rules,
  http: ['engine', 'engine/webhooks', 'engine/cluster', 'engine/runs', ...reading],
  protocols: ['http', 'engine', 'engine/runs', ...reading],
  // Agents of other libraries; they know no more of Rivulet than any agent does.
  adapters: rules,
  // Agents that ask a model by themselves.
  llm: rules,
  client: rules,
  // Agents and tools of other servers.
  remote: ['client', 'http', 'engine/base', 'engine/agents', ...rules],
  react: ['client'],
  // Parsing of Markdown that grows, for the page and the terminal.
  markdown: [],
  // The form of a question's reply, for the page and the terminal.
  forms: rules,
  playground: ['client', 'forms', 'markdown', ...rules],
  // A server of all the rooms below: its routes, its lifetime, and the same agents without HTTP.
  server: ['client', 'protocols', 'http', 'engine', 'engine/dispatch', 'engine/log', ...base, ...behind],
  testing: ['client', 'engine', ...base, 'stores'],
  cli: ['server', 'client', 'forms', 'markdown', 'http', 'engine', ...base, 'stores'],
  // `index.ts`: what the package exports.
  '.': ['server', 'client', 'http', 'engine/dispatch', ...base],
};

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
const textOf = (file: string): string => readFileSync(join(src, file), 'utf8');
const roomOf = (file: string): string => {
  const [folder = '', name = '', ...deeper] = file.split('/');
  if (name === '') return '.';
  if (folder !== 'engine' || ['engine/engine.ts', 'engine/access.ts', 'engine/services.ts'].includes(file))
    return folder;
  return deeper.length > 0 ? `engine/${name}` : 'engine/base';
};

const imports = files.flatMap((file) =>
  [...textOf(file).matchAll(/(?:from|import\()\s*'([^']+)'/g)].map(([, target = '']) => ({
    file,
    target: target.startsWith('.') ? relative(src, resolve(src, file, '..', target)) : target,
    ours: target.startsWith('.'),
  })),
);

describe('the rooms of src', () => {
  it('are all known to this test', () => {
    expect(files.length).toBeGreaterThan(20);
    expect([...new Set(files.map(roomOf))].filter((room) => !(room in rooms))).toEqual([]);
  });

  it('import only what lies below them', () => {
    const up = imports
      .filter(({ ours }) => ours)
      .filter(({ file, target }) => target !== '../package.json' && roomOf(file) !== roomOf(target))
      .filter(({ file, target }) => !rooms[roomOf(file)]?.includes(roomOf(target)));
    expect(up).toEqual([]);
  });

  it('have no ring of imports', () => {
    const next = new Map(
      files.map((file) => [file, imports.filter((one) => one.ours && one.file === file).map((one) => one.target)]),
    );
    const rings: string[] = [];
    const done = new Set<string>();
    const visit = (file: string, path: string[]): void => {
      if (path.includes(file)) rings.push([...path.slice(path.indexOf(file)), file].join(' → '));
      if (path.includes(file) || done.has(file)) return;
      for (const target of next.get(file) ?? []) visit(target, [...path, file]);
      done.add(file);
    };
    for (const file of files) visit(file, []);
    expect(rings).toEqual([]);
  });

  it('keep Fastify, Node and databases out of schema and core', () => {
    const pure = ['mime/lite', 'rxjs', '@sinclair/typebox', '@sinclair/typebox/compiler'];
    const impure = imports
      .filter(({ file, ours }) => !ours && ['schema', 'core'].includes(roomOf(file)))
      .filter(({ target }) => !pure.includes(target));
    expect(impure).toEqual([]);
  });

  it('connect to PostgreSQL in one way, which no lost connection of makes the process end', () => {
    const own = /new (pg\.)?(Client|Pool)\(/;
    const connecting = files.filter((file) => file.startsWith('postgres/') || /from 'pg'/.test(textOf(file)));
    expect(connecting.filter((file) => own.test(textOf(file)))).toEqual(['postgres/connections.ts']);
  });

  it('keep everything but RxJS and an SSE parser out of the client, which browsers load', () => {
    const foreign = imports
      .filter(({ file, ours }) => !ours && roomOf(file) === 'client')
      .filter(({ target }) => !['rxjs', 'eventsource-parser'].includes(target));
    expect(foreign).toEqual([]);
  });

  it('keep protocols apart from each other and from stores', () => {
    const crossing = imports.filter(
      ({ file, target, ours }) =>
        ours &&
        file.startsWith('protocols/') &&
        target.startsWith('protocols/') &&
        // Files beside the protocols are what they share.
        target.split('/').length > 2 &&
        file.split('/')[1] !== target.split('/')[1],
    );
    expect(crossing).toEqual([]);
  });

  it('have no barrel and no drawer for odds and ends', () => {
    const odd = files.filter(
      (file) =>
        /(^|\/)(utils?|helpers?|types|interfaces|common|misc)(\/|\.ts$)/.test(file) || /\/index\.ts$/.test(file),
    );
    expect(odd).toEqual([]);
  });
});
