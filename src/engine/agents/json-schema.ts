import { createRequire } from 'node:module';
import { Ajv, type ErrorObject, type Options } from 'ajv';
import draft6 from 'ajv/dist/refs/json-schema-draft-06.json' with { type: 'json' };
import addFormats from 'ajv-formats';
import { LRUCache } from 'lru-cache';
import { fail } from '../../core/errors.ts';
import { cut } from '../../core/json.ts';
import { inProcessorTime, type Limited } from './processor-time.ts';

/** Returns the errors of a value. */
type Check = (value: unknown) => readonly ErrorObject[];
type Schema = Readonly<Record<string, unknown>>;

/** Characters of a value all of whose problems are found; of a longer one only the first, because each costs memory. */
const maxFormChars = 16 * 1024;
/** Problems of a value that the refusal lists. */
const maxProblems = 100;
/** Characters of a schema's JSON. Compiling one of this size takes about 100 ms. */
const maxSchemaChars = 64 * 1024;
/** Milliseconds of processor time that the check of a value may take: a pattern may backtrack without end. */
const maxCheckTime = 250;

// `strict` and `logger` off: schemas come from other programs, which may use keywords of their own. `ownProperties`: a
// value without `constructor` or `toString` does not have them, although each object inherits them. `strictNumbers`: 1e400
// in JSON is Infinity, which no JSON has afterwards.
const options: Options = {
  strict: false,
  strictNumbers: true,
  logger: false,
  addUsedSchema: false,
  ownProperties: true,
};

// Loaded by the first schema of their dialect, because most servers need none of them.
const require = createRequire(import.meta.url);
const ajv2019 = (): typeof import('ajv/dist/2019.js') => require('ajv/dist/2019.js');
const ajv2020 = (): typeof import('ajv/dist/2020.js') => require('ajv/dist/2020.js');
const ajvDraft4 = (): typeof import('ajv-draft-04') => require('ajv-draft-04');

const draft7 = '//json-schema.org/draft-07/schema';
const ajvMakers = {
  '//json-schema.org/draft-04/schema': (options) => new (ajvDraft4().default)(options),
  '//json-schema.org/draft-06/schema': (options) => new Ajv(options).addMetaSchema(draft6),
  [draft7]: (options) => new Ajv(options),
  '//json-schema.org/draft/2019-09/schema': (options) => new (ajv2019().Ajv2019)(options),
  '//json-schema.org/draft/2020-12/schema': (options) => new (ajv2020().Ajv2020)(options),
} satisfies Record<string, (options: Options) => Ajv>;

type Dialect = keyof typeof ajvMakers;
const isDialect = (name: string): name is Dialect => Object.hasOwn(ajvMakers, name);

const ajvs = { first: new Map<Dialect, Ajv>(), all: new Map<Dialect, Ajv>() };

/** Whether a check stops at the first error. */
type Extent = keyof typeof ajvs;

/** The dialect that a schema names. @throws Error where there is no such one */
function dialectOf({ $schema = draft7 }: Schema): Dialect {
  const dialect = String($schema).replace(/^https?:|#$/g, '');
  if (isDialect(dialect)) return dialect;
  throw new Error(
    `has an unknown $schema; expected draft 4, 6, 7, 2019-09 or 2020-12, got "${cut(String($schema), 100)}"`,
  );
}

/** The Ajv for a dialect. One for each: making one takes 10 ms. */
function ajvFor(dialect: Dialect, extent: Extent): Ajv {
  const known = ajvs[extent].get(dialect);
  if (known !== undefined) return known;
  const ajv = ajvMakers[dialect]({ ...options, allErrors: extent === 'all' });
  addFormats.default(ajv);
  ajvs[extent].set(dialect, ajv);
  return ajv;
}

/** Compiled schemas. Bounded, because an agent may make a new schema for each run. */
const compiled = new LRUCache<string, Check>({
  max: 100,
  maxSize: 1024 * 1024,
  sizeCalculation: (_, key) => key.length,
});

/**
 * Compiles a JSON Schema: draft 4 to 2020-12, with the formats of ajv-formats.
 * @throws Error that says what is wrong with the schema
 */
function compileSchema(schema: Schema, extent: Extent): Check {
  const text = JSON.stringify(schema);
  const key = `${extent} ${text}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  if (text.length > maxSchemaChars) throw new Error(`is longer than ${maxSchemaChars} characters of JSON`);
  if (schema.$async !== undefined) throw new Error('has $async, which is not supported');
  const ajv = ajvFor(dialectOf(schema), extent);
  // An Ajv has one dialect, and knows it by one of its names only.
  const { $schema: _, ...rest } = schema;
  // Without an id, Ajv does not find the schema that "#" refers to, which is this one.
  const { schemaId = '$id' } = ajv.opts;
  const named = { [schemaId]: 'rivulet-schema', ...rest };
  const validate = ajv.compile(named);
  // The cache is above; and another schema may have the same id.
  ajv.removeSchema(named);
  const errorsIn: Check = (value) => {
    validate(value);
    const { errors } = validate;
    // Ajv keeps the errors of the last value, which may be many.
    validate.errors = null;
    return errors ?? [];
  };
  compiled.set(key, errorsIn);
  return errorsIn;
}

/**
 * Called where a schema is stated, so that an invalid one is an error of its author, and not of the client whose value it
 * checks. @throws Error that says what is wrong with the schema
 */
export const checkSchema = (schema: Schema): void => void compileSchema(schema, 'first');

/** A value of a client, and where its request has it. */
export interface Checked {
  readonly path: string;
  readonly value: unknown;
  /** Characters of the value's text. */
  readonly chars: number;
}

/**
 * Checks a value against a schema that `checkSchema` has accepted, in limited time.
 * @throws RivuletError `validation_failed` that names the first problem, and lists all of them; `too_busy` where the
 *   machine has no processor time for the check
 */
export function checkAgainst(schema: Schema, { path, value, chars }: Checked): void {
  const [first] = errorsOf(check(schema, 'first', value), path);
  if (first === undefined) return;
  // Most values are valid, and need no second compilation.
  const all = chars > maxFormChars ? undefined : check(schema, 'all', value);
  const errors = all?.state === 'done' ? all.value : [first];
  const refused = fail(
    'validation_failed',
    `${path}${first.instancePath}`,
    first.message ?? 'does not fit the schema that was asked for',
  );
  throw refused.with({ problems: errors.slice(0, maxProblems).map(problemOf) });
}

type Outcome = Limited<readonly ErrorObject[]> | { readonly state: 'too-deep' };

function check(schema: Schema, extent: Extent, value: unknown): Outcome {
  const errorsIn = compileSchema(schema, extent);
  try {
    return inProcessorTime(maxCheckTime, () => errorsIn(value));
  } catch (error) {
    // The stack is full: a schema that refers to itself goes as deep as the value.
    if (error instanceof RangeError) return { state: 'too-deep' };
    throw error;
  }
}

function errorsOf(outcome: Outcome, path: string): readonly ErrorObject[] {
  switch (outcome.state) {
    case 'done':
      return outcome.value;
    case 'too-long':
      throw fail('validation_failed', path, `takes more than ${maxCheckTime} ms to check; send something shorter`);
    case 'too-deep':
      throw fail('validation_failed', path, 'is nested too deeply to check');
    case 'starved':
      throw fail('too_busy', `The machine has no processor time to check ${path}`);
  }
}

/** A problem for the form's field that `path`, a JSON Pointer into the reply, names. */
function problemOf({ instancePath, keyword, params, message = 'does not fit' }: ErrorObject) {
  if (keyword === 'required') {
    const name = String(params.missingProperty).replaceAll('~', '~0').replaceAll('/', '~1');
    return { path: `${instancePath}/${name}`, text: 'is required' };
  }
  const allowed: unknown = params.allowedValues;
  const text =
    keyword === 'enum' && Array.isArray(allowed) ? `must be one of ${cut(allowed.join(', '), 200)}` : message;
  return { path: instancePath, text };
}
