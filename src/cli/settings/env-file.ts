import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs, parseEnv } from 'node:util';
import { fileProblem, UsageError } from '../exit-codes.ts';

/** Read from the folder in which the program is started, where no option names another file. */
const usualName = '.env';

/** A file with variables for the environment. A variable that the environment has already keeps its value. */
export class EnvFile {
  readonly name: string;
  readonly path: string;
  readonly #env: NodeJS.ProcessEnv;
  /** Without `--env-file` there may be no such file, or a folder of that name, as Python programs have it. */
  readonly #isOptional: boolean;
  #names = new Set<string>();

  /** @throws UsageError where the file cannot be read */
  constructor(name: string, isOptional: boolean, env: NodeJS.ProcessEnv) {
    this.name = name;
    this.path = resolve(name);
    this.#isOptional = isOptional;
    this.#env = env;
    this.read();
  }

  /** Sets the variables of the file, and removes those that it had when it was last read. @throws UsageError as above */
  read(): void {
    const variables = Object.entries(parseEnv(this.#text()));
    const before = this.#names;
    this.#names = new Set();
    for (const name of before) delete this.#env[name];
    for (const [name, value] of variables) {
      if (this.#env[name] !== undefined) continue;
      this.#env[name] = value;
      this.#names.add(name);
    }
  }

  /** Whether a variable has its value from the file. */
  has(name: string): boolean {
    return this.#names.has(name);
  }

  #text(): string {
    try {
      return readFileSync(this.path, 'utf8');
    } catch (error) {
      if (this.#isOptional && ['ENOENT', 'EISDIR'].includes(Object(error).code)) return '';
      throw new UsageError(`${this.name}: ${fileProblem(error)}`);
    }
  }
}

let current: EnvFile | undefined;

/** The file that `readEnvFile` has read for the command. */
export const envFile = (): EnvFile | undefined => current;

/**
 * Adds the variables of a file to the environment: of the one that `--env-file` names, else of `.env`. Commander reads
 * the environment while it reads the arguments, so this comes first.
 * @throws UsageError where the file cannot be read
 */
export function readEnvFile(args: readonly string[]): void {
  const { values } = parseArgs({
    args: [...args],
    strict: false,
    options: { 'env-file': { type: 'string' }, 'no-env-file': { type: 'boolean' } },
  });
  current = undefined;
  if (values['no-env-file'] === true) return;
  const named = values['env-file'];
  // Without a file behind it, the option is a mistake that commander reports.
  if (typeof named === 'boolean') return;
  current = new EnvFile(named ?? usualName, named === undefined, process.env);
}

/** A variable as messages name it: `PORT`, or `PORT of .env`. */
export const variableName = (name: string): string => (current?.has(name) ? `${name} of ${current.name}` : name);
