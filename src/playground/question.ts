/** A JSON Schema, as far as forms are made of one. */
export interface Schema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: string;
}

export type Kind = 'choice' | 'boolean' | 'number' | 'text' | 'list' | 'object' | 'json';

/** What a value is put in with. */
export function kindOf(schema: Schema): Kind {
  if (Array.isArray(schema.enum)) return 'choice';
  switch (schema.type) {
    case 'boolean':
      return 'boolean';
    case 'number':
    case 'integer':
      return 'number';
    case 'string':
      return 'text';
    case 'array':
      return schema.items?.type === 'string' && schema.items.enum === undefined ? 'list' : 'json';
    case 'object':
      return schema.properties === undefined ? 'json' : 'object';
    default:
      return 'json';
  }
}

/** What the form begins with. */
export function initial(schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default;
  const kind = kindOf(schema);
  if (kind === 'boolean') return false;
  if (kind !== 'object') return undefined;
  return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, initial(inner)]));
}

export interface Problem {
  /** Where in the reply, such as `/amount`; empty for all of it. */
  readonly path: string;
  readonly text: string;
}

/** What the server has against a reply, and against which field. */
export function problemOf(message: string): Problem {
  const found = /^await_resume\.message\.parts(?:\[\d+\]\.content)?(\/[^:]*)?: (.*)$/s.exec(message);
  if (found === null) return { path: '', text: message };
  const [, path = '', text = message] = found;
  const missing = /^must have required property '([^']+)'/.exec(text)?.[1];
  return missing === undefined ? { path, text } : { path: `${path}/${missing}`, text: 'is required.' };
}
