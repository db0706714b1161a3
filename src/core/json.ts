/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Whether a value is a JSON object, in which any key may have any value. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Limits of a value: the characters of all its texts and keys, and the number of its values, itself included. */
export interface JsonLimits {
  readonly chars: number;
  readonly values: number;
  /** Whether half a surrogate pair becomes U+FFFD. No UTF-8 exists for it: some clients refuse it. */
  readonly wellFormed?: boolean;
}

/** Encoding deeper JSON could overflow the stack. */
export const maxDepth = 100;

/** The problem of a value that is not JSON, and the path of its field. */
export class NotJson extends Error {
  readonly path: (string | number)[] = [];
  readonly problem: string;

  constructor(problem: string, cause?: unknown) {
    super(problem, { cause });
    this.name = 'NotJson';
    this.problem = problem;
  }

  /** The path below `where`, such as `input[0].parts`. */
  pathIn(where: string): string {
    return this.path.reduce<string>((path, key) => path + (typeof key === 'number' ? `[${key}]` : `.${key}`), where);
  }
}

/**
 * A copy of a value as plain JSON, as JSON.stringify would write it. Depth, number of values and text are limited, so
 * that no cycle, and no value that contains itself twice at each level, can exhaust the process. Functions, symbols and
 * BigInts are refused instead of being left out. Reading the value may run foreign code: getters, `toJSON`, traps of a
 * Proxy. Any error of that code becomes a NotJson.
 * @throws NotJson that names the field
 */
export function toJson(value: unknown, limits: JsonLimits): Json | undefined {
  return new Copier(limits).copy(value, '', maxDepth);
}

class Copier {
  #chars: number;
  #values: number;
  readonly #limits: JsonLimits;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
    this.#chars = limits.chars;
    this.#values = limits.values;
  }

  copy(value: unknown, key: string | number, levels: number): Json | undefined {
    this.#values -= 1;
    if (this.#values < 0) throw new NotJson(`has more than ${this.#limits.values} values`);
    switch (typeof value) {
      case 'string':
        return this.#text(value);
      case 'number':
        // JSON has no -0 either.
        return Number.isFinite(value) ? value + 0 : null;
      case 'boolean':
      case 'undefined':
        return value;
      case 'object':
        return value === null ? null : this.#object(value, key, levels);
      default:
        throw new NotJson(`is a ${typeof value}, which JSON cannot express`);
    }
  }

  #object(value: object, key: string | number, levels: number): Json | undefined {
    if (levels === 0) throw new NotJson(`is nested deeper than ${maxDepth} levels, or contains itself`);
    let at: string | number | undefined;
    try {
      const toJSON: unknown = Reflect.get(value, 'toJSON');
      if (typeof toJSON === 'function') return this.copy(toJSON.call(value, String(key)), key, levels - 1);
      if (value instanceof String || value instanceof Number || value instanceof Boolean) {
        return this.copy(value.valueOf(), key, levels - 1);
      }
      if (Array.isArray(value)) {
        const copies: Json[] = [];
        for (at = 0; at < value.length; at += 1) copies.push(this.copy(value[at], at, levels - 1) ?? null);
        return copies;
      }
      const copy: { [key: string]: Json } = {};
      for (at of Object.keys(value)) {
        const inner = this.copy(Reflect.get(value, at), at, levels - 1);
        if (inner === undefined) continue;
        setProperty(copy, this.#text(at), inner);
      }
      return copy;
    } catch (error) {
      const problem = error instanceof NotJson ? error : new NotJson(`cannot be read: ${reasonOf(error)}`, error);
      if (at !== undefined) problem.path.unshift(at);
      throw problem;
    }
  }

  #text(text: string): string {
    const { chars, wellFormed = false } = this.#limits;
    this.#chars -= text.length;
    if (this.#chars < 0) throw new NotJson(`has more than ${chars} characters`);
    return wellFormed ? text.toWellFormed() : text;
  }
}

/** Texts of JSON.stringify have no other form of these keys. */
const suspicious = /"(?:__proto__|constructor)":/;

/**
 * The value of a JSON text, where `hostile` stands for each value under a key that could change the prototype of an object
 * which is copied key by key. Texts of clients may have such keys, and so may the results of tools.
 */
export function parsedWithout<T>(text: string, hostile: () => undefined): T {
  if (!suspicious.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value: unknown) => {
    const isHostile =
      key === '__proto__' || (key === 'constructor' && isObject(value) && Object.hasOwn(value, 'prototype'));
    return isHostile ? hostile() : value;
  });
}

function setProperty(target: { [key: string]: Json }, key: string, value: Json): void {
  // Assigning to this key would set the prototype.
  if (key === '__proto__') Object.defineProperty(target, key, { value, enumerable: true, configurable: true });
  else target[key] = value;
}

/** The first line of a thrown value's message, at most 200 characters. Works for any value, and never throws. */
export function reasonOf(thrown: unknown): string {
  try {
    const text = typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, 'message') : thrown;
    const [line = ''] = typeof text === 'string' ? text.split('\n', 1) : [];
    return cut(line, 200) || 'no reason given';
  } catch {
    return 'no reason given';
  }
}

/** The whole message of an error, also of a thrown value that is none. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A text of at most so many characters; a longer one ends with `…`. Has no half of a surrogate pair. */
export function cut(text: string, chars: number): string {
  const short = text.length > chars ? `${text.slice(0, chars - 1).replace(/[\ud800-\udbff]$/, '')}…` : text;
  return short.toWellFormed();
}

/** The value of a JSON text; undefined where the text is none. */
export function readJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** A JSON text's value; a text that is not JSON is its own value. */
export function parsed(text: string): unknown {
  const found = readJson(text);
  return found === undefined ? text : found.value;
}
