/** A value that SQLite keeps; there are no blobs here. */
export type Value = string | number | null;

/** A statement that was compiled, with the parameters that it takes, by place, and the rows that it gives. */
export interface Statement<Parameters extends readonly Value[], Row = unknown> {
  run(...parameters: Parameters): { readonly changes: number; readonly lastInsertRowid: number };
  get(...parameters: Parameters): Row | undefined;
  all(...parameters: Parameters): Row[];
  iterate(...parameters: Parameters): Iterable<Row>;
}

/** What is used of `DatabaseSync`, the interface of Node's own SQLite. */
export interface Database {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare<Parameters extends readonly Value[], Row = unknown>(sql: string): Statement<Parameters, Row>;
  close(): void;
}

type Open = new (path: string, options?: { readOnly?: boolean }) => Database;

/** Opens files: with Node's own SQLite from 22.16 on, before that with the package that has the same interface. */
const Driver: Open = await found();

/** @throws Error where the file cannot be opened */
export function openDatabase(path: string, options: { readOnly?: boolean } = {}): Database {
  return new Driver(path, options);
}

async function found(): Promise<Open> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 16)) {
    const { DatabaseSync } = quietly(() => process.getBuiltinModule('node:sqlite'));
    return DatabaseSync as unknown as Open;
  }
  const { DatabaseSync } = await import('@photostructure/sqlite');
  return withoutZeros(DatabaseSync as unknown as Open);
}

/** Node 22 calls its SQLite an experiment, on the error output of every command; all other warnings are shown. */
function quietly<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    if (String(warning).includes('SQLite is an experimental feature')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * The package ends a text at its first zero, so that one name could stand for another. A text with a zero is refused,
 * and what is looked for by one is not there. Costs some 50 ns a statement.
 */
function withoutZeros(Inner: Open): Open {
  const hasZero = (parameters: readonly Value[]): boolean =>
    parameters.some((one) => typeof one === 'string' && one.includes('\0'));
  return class extends Inner {
    override prepare<Parameters extends readonly Value[], Row>(sql: string): Statement<Parameters, Row> {
      const statement = super.prepare<Parameters, Row>(sql);
      const isLookup = /^\s*(SELECT|DELETE)/.test(sql);
      const isMissing = (parameters: Parameters): boolean => {
        if (!hasZero(parameters)) return false;
        if (isLookup) return true;
        throw new TypeError('SQLite cannot keep a text with a zero in it');
      };
      const none = { changes: 0, lastInsertRowid: 0 };
      return {
        run: (...parameters) => (isMissing(parameters) ? none : statement.run(...parameters)),
        get: (...parameters) => (isMissing(parameters) ? undefined : statement.get(...parameters)),
        all: (...parameters) => (isMissing(parameters) ? [] : statement.all(...parameters)),
        iterate: (...parameters) => (isMissing(parameters) ? [] : statement.iterate(...parameters)),
      };
    }
  };
}

/** SQLite's result codes that say something about a statement or its values, and not about the file or the disk. */
const ofValues = new Set([1, 11, 18, 19, 20, 25]);

/**
 * Whether an error comes from what was to be written: a constraint, a text that is too long, a damaged page. Other
 * errors of SQLite, such as a full disk or a lock that is held, say that it may be tried again.
 */
export function isOfValues(error: unknown): boolean {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) : undefined;
  return code === undefined || ofValues.has(code & 0xff);
}
