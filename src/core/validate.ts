import {
  KindGuard,
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  type TString,
  type TUnion,
  Type,
} from '@sinclair/typebox';
import { type TypeCheck, TypeCompiler, type ValueError, ValueErrorType } from '@sinclair/typebox/compiler';
import { fail } from './errors.ts';
import { cut, isObject } from './json.ts';

/** An object that may have other fields as well: the next version of a protocol has more of them. */
export const open = <Fields extends TProperties>(fields: Fields) => Type.Object(fields, { additionalProperties: true });

/** Checks a value and returns it typed. A null of an optional field counts as absent, and is dropped. */
export type Validator<T> = (value: unknown) => T;

/**
 * A validator for a schema. It throws RivuletError `validation_failed` that names the field. `where` names the whole value
 * in messages, such as `body`. The first call compiles the schema: most servers need few of the schemas of their routes.
 */
export function compile<S extends TSchema>(schema: S, where = 'body'): Validator<Static<S>> {
  let compiled: TypeCheck<S> | undefined;
  return (value) => {
    compiled ??= checkOf(schema);
    const check = compiled;
    if (check.Check(value)) return value;
    // Only after a failure: most clients send no nulls, and should not pay for it.
    const cleaned = withoutNulls(schema, value);
    if (check.Check(cleaned)) return cleaned;
    const error = check.Errors(cleaned).First();
    throw error === undefined
      ? fail('validation_failed', where, 'does not fit')
      : validationError(deepest(error), where);
  };
}

/** The check of each schema, as long as there is the schema: several routes, and all servers of a process, have the same ones. */
const checks = new WeakMap<TSchema, TypeCheck<TSchema>>();

function checkOf<S extends TSchema>(schema: S): TypeCheck<S> {
  const known = checks.get(schema);
  // A cast: a WeakMap cannot say that the type of its value follows from its key.
  if (known !== undefined) return known as TypeCheck<S>;
  const check = TypeCompiler.Compile(schema);
  checks.set(schema, check);
  return check;
}

/** What is wrong at one place of a value. */
export interface Problem {
  /** The names and indexes that lead to the place. */
  readonly path: readonly string[];
  readonly text: string;
  /** Whether the place is a field that the schema does not know. */
  readonly isUnknown: boolean;
}

const maxProblems = 100;

/** Every mistake of a value, one for each place, and at most a hundred; `compile` throws the first. */
export function problemsOf(schema: TSchema, value: unknown): Problem[] {
  const found = new Map<string, Problem>();
  for (const error of checkOf(schema).Errors(value)) {
    const { path, type } = deepest(error);
    if (found.has(path)) continue;
    const isUnknown = type === ValueErrorType.ObjectAdditionalProperties;
    found.set(path, { path: keysOf(path), text: problemOf(deepest(error)), isUnknown });
    if (found.size === maxProblems) break;
  }
  return [...found.values()];
}

/** Drops null where the schema has an optional field. Free-form objects keep their nulls. */
function withoutNulls(schema: TSchema, value: unknown): unknown {
  if (KindGuard.IsArray(schema) && Array.isArray(value)) {
    return value.map((item) => withoutNulls(schema.items, item));
  }
  if (KindGuard.IsUnion(schema)) {
    return schema.anyOf.reduce(
      (rest, variant) =>
        KindGuard.IsObject(variant) && !matchesLiterals(variant, rest) ? rest : withoutNulls(variant, rest),
      value,
    );
  }
  if (!KindGuard.IsObject(schema) || !isObject(value)) return value;
  const kept: Record<string, unknown> = { ...value };
  for (const [key, property] of Object.entries(schema.properties)) {
    if (!Object.hasOwn(kept, key)) continue;
    if (kept[key] === null && KindGuard.IsOptional(property)) delete kept[key];
    else kept[key] = withoutNulls(property, kept[key]);
  }
  return kept;
}

/** Whether an object has the literal fields (`kind`, `type`) of one variant of a union, without the optional ones. */
function matchesLiterals(variant: TObject, value: unknown): boolean {
  if (!isObject(value)) return false;
  return Object.entries(variant.properties).every(([key, property]) => {
    const isAbsent = (value[key] ?? undefined) === undefined;
    return (
      !KindGuard.IsLiteral(property) || value[key] === property.const || (isAbsent && KindGuard.IsOptional(property))
    );
  });
}

// A union fails with one error for all its variants. The literal fields of an object say which variant is meant. For a text
// or a list, the variant of that type is meant. Otherwise it is probably the variant with the deepest error.
function deepest(error: ValueError): ValueError {
  let best = error;
  const schemas: TSchema[] = KindGuard.IsUnion(error.schema) ? error.schema.anyOf : [];
  for (const [index, variant] of error.errors.entries()) {
    const schema = schemas[index];
    const isOther = isObject(error.value) && KindGuard.IsObject(schema) && !matchesLiterals(schema, error.value);
    if (isOther) continue;
    const first = variant.First();
    if (first === undefined || KindGuard.IsLiteral(first.schema)) continue;
    const inner = deepest(first);
    const isOfType = best === error && hasTypeOf(inner.schema, error.value);
    if (inner.path.length > best.path.length || isOfType) best = inner;
  }
  return best;
}

const hasTypeOf = (schema: TSchema, value: unknown): boolean =>
  (typeof value === 'string' && KindGuard.IsString(schema)) || (Array.isArray(value) && KindGuard.IsArray(schema));

const hasShape = ({ pattern, format, description }: TString): boolean =>
  description !== undefined && (pattern !== undefined || format !== undefined);

function validationError(error: ValueError, where: string) {
  return fail('validation_failed', pathOf(error.path, where), `${problemOf(error)}${cameOf(error)}`);
}

const keysOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));

/** Converts `/input/0/parts` to `input[0].parts`. */
function pathOf(pointer: string, where: string): string {
  const path = keysOf(pointer)
    .map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key}`))
    .join('');
  // A field of a body needs no prefix; any other one does.
  return where === 'body' && path !== '' ? path.replace(/^\./, '') : `${where}${path}`;
}

/**
 * What came in place of the type or the choice that was expected. Of a text in place of another type, only the type is
 * named: the text may be long or secret.
 */
function cameOf({ schema, value }: ValueError): string {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return `, got ${value}`;
  const isChoice = KindGuard.IsLiteral(schema) || (KindGuard.IsUnion(schema) && literalsOf(schema).length > 0);
  if (typeof value === 'string' && isChoice) return `, got ${JSON.stringify(cut(value, 60))}`;
  const type = Array.isArray(value) ? 'array' : typeof value;
  const fits = KindGuard.IsUnion(schema) ? schema.anyOf.some((variant) => variant.type === type) : schema.type === type;
  return value === undefined || fits ? '' : `, got ${type}`;
}

const literalsOf = ({ anyOf }: TUnion): string[] =>
  anyOf.flatMap((variant) => (KindGuard.IsLiteral(variant) ? [String(variant.const)] : []));

function problemOf(error: ValueError): string {
  if (error.message === 'Expected required property') return 'is required';
  // The schema's description explains the pattern to people; the default message names the longest length.
  const isTooLong = error.type === ValueErrorType.StringMaxLength;
  if (!isTooLong && KindGuard.IsString(error.schema) && typeof error.value === 'string' && hasShape(error.schema)) {
    return `expected ${error.schema.description}, got ${JSON.stringify(cut(error.value, 60))}`;
  }
  const variants: TSchema[] = KindGuard.IsUnion(error.schema) ? error.schema.anyOf : [];
  const literals = KindGuard.IsUnion(error.schema) ? literalsOf(error.schema) : [];
  if (literals.length > 0 && literals.length === variants.length) return `expected one of ${literals.join(', ')}`;
  const kinds = variants.flatMap((variant) =>
    KindGuard.IsObject(variant)
      ? Object.values(variant.properties).flatMap((property) =>
          KindGuard.IsLiteral(property) ? [String(property.const)] : [],
        )
      : [],
  );
  if (kinds.length > 0) return `expected one of the kinds ${kinds.join(', ')}`;
  const types = variants.map(({ type }): unknown => type);
  if (types.length > 0 && types.every((type) => typeof type === 'string')) return `expected ${types.join(' or ')}`;
  return `${error.message.charAt(0).toLowerCase()}${error.message.slice(1)}`;
}
