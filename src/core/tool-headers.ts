import { isObject } from './json.ts';

// A tool may name arguments that its MCP clients repeat in headers, so that proxies can route calls without reading their
// bodies: `x-mcp-header` in a property of its schema.

/** An argument that clients repeat in the header `Mcp-Param-{name}`. */
export interface ToolHeader {
  readonly name: string;
  /** The names of the properties that lead to the argument. */
  readonly path: readonly string[];
}

const keyword = 'x-mcp-header';
const types: readonly unknown[] = ['string', 'integer', 'boolean'];
const token = /^[\w!#$%&'*+.^`|~-]+$/;

/** The headers that the schema of a tool names. @throws Error where clients would refuse the tool for one */
export function toolHeadersIn(schema: Readonly<Record<string, unknown>>): ToolHeader[] {
  const found: ToolHeader[] = [];
  collect(schema, [], true, found);
  const names = found.map(({ name }) => name.toLowerCase());
  const twice = found.find(({ name }, index) => names.indexOf(name.toLowerCase()) !== index);
  if (twice !== undefined)
    throw new Error(`${keyword}: two properties have "${twice.name}"; give each a name of its own`);
  return found;
}

/** `named`: only `properties` lead from the schema of the tool to this one. */
function collect(schema: unknown, path: readonly string[], named: boolean, found: ToolHeader[]): void {
  if (Array.isArray(schema)) for (const one of schema) collect(one, path, false, found);
  if (!isObject(schema)) return;
  const { [keyword]: name, properties, ...rest } = schema;
  if (name !== undefined) {
    const at = `${path.join('.') || 'the schema itself'}: ${keyword}`;
    if (!named || path.length === 0) throw new Error(`${at}: expected at a property that only \`properties\` lead to`);
    if (typeof name !== 'string' || !token.test(name))
      throw new Error(`${at}: expected the characters of a header's name`);
    if (!types.includes(schema.type)) throw new Error(`${at}: expected a property of the type ${types.join(', ')}`);
    found.push({ name, path });
  }
  if (isObject(properties))
    for (const [key, property] of Object.entries(properties)) collect(property, [...path, key], named, found);
  // Values, and not schemas.
  const { const: _, default: __, enum: ___, examples: ____, ...schemas } = rest;
  for (const [key, one] of Object.entries(schemas)) collect(one, [...path, key], false, found);
}
