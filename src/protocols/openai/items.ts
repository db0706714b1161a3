import { type Static, Type } from '@sinclair/typebox';
import { Contents } from './content.ts';

// The items of an input that this server knows, which are those of its own outputs and what clients add to them.

const Text = Type.String();
export const Id = Type.String({ minLength: 1, maxLength: 255 });
const Output = Type.Optional(Type.String());
const Summary = Type.Array(Type.Object({ text: Text }), { maxItems: 1_000 });
const Role = Type.Union([
  Type.Literal('user'),
  Type.Literal('assistant'),
  Type.Literal('system'),
  Type.Literal('developer'),
]);

export const Item = Type.Union([
  Type.Object({ type: Type.Literal('function_call'), call_id: Id, name: Id, arguments: Text }),
  Type.Object({ type: Type.Literal('function_call_output'), call_id: Id, output: Contents }),
  Type.Object({
    type: Type.Literal('reasoning'),
    summary: Type.Optional(Summary),
    content: Type.Optional(Summary),
  }),
  Type.Object({ type: Type.Literal('mcp_call'), name: Id, arguments: Text, output: Output }),
  Type.Object({ type: Type.Literal('image_generation_call'), result: Output, output_format: Output }),
  Type.Object({ type: Type.Literal('item_reference'), id: Id }),
  Type.Object({
    type: Type.Optional(Type.Literal('message')),
    role: Role,
    content: Contents,
    status: Type.Optional(Type.Unknown()),
  }),
]);
export type Item = Static<typeof Item>;

// Items of other servers, which clients repeat that keep the history themselves, or change the server in a conversation.

const ownTypes = Item.anyOf.map(({ properties: { type } }) => type);

/** An item of a type that this server does not know. One with a known type has to have its fields. */
const ForeignItem = Type.Intersect([Type.Object({ type: Id }), Type.Not(Type.Object({ type: Type.Union(ownTypes) }))]);
type ForeignItem = Static<typeof ForeignItem>;

export const AnyItem = Type.Union([...Item.anyOf, ForeignItem]);
type AnyItem = Static<typeof AnyItem>;

/** A message needs no type. */
const known = new Set<string | undefined>([undefined, ...ownTypes.map(({ const: type }) => type)]);
export const isOwn = (item: AnyItem): item is Item => known.has(item.type);

export interface OwnItems {
  /** At the place of an item that is passed over: undefined. */
  readonly items: (Item | undefined)[];
  /** The types of these. */
  readonly ignored: string[];
}

/**
 * The items as this server knows them. Calls of tools and their results stay, whatever the tool was; what only its own
 * server can read, such as a compaction, is passed over.
 */
export function ownItems(all: readonly AnyItem[]): OwnItems {
  const calls = new Set<string>();
  const ignored = new Set<string>();
  const items = all.map((item) => {
    const own = isOwn(item) ? item : ofForeign(item, calls);
    if (own?.type === 'function_call') calls.add(own.call_id);
    else if (own === undefined && item.type !== undefined) ignored.add(item.type);
    return own;
  });
  return { items, ignored: [...ignored] };
}

/** A call, or the result of one of these calls. */
function ofForeign(item: ForeignItem, calls: ReadonlySet<string>): Item | undefined {
  const { type, id: _, status: __, call_id, name, input, output, ...more }: ForeignFields = item;
  const [, tool, isResult] = /^(\w+)_call(_output)?$/.exec(type) ?? [];
  if (tool === undefined) return undefined;
  const isNamed = typeof call_id === 'string' && call_id !== '';
  if (isResult !== undefined) {
    return isNamed && calls.has(call_id)
      ? { type: 'function_call_output', call_id, output: textIn(output ?? more) }
      : undefined;
  }
  const call = { name: typeof name === 'string' && name !== '' ? name : tool, arguments: textIn(input ?? more) };
  if (isNamed) return { type: 'function_call', call_id, ...call };
  return { type: 'mcp_call', ...call, ...(output !== undefined && { output: textIn(output) }) };
}

interface ForeignFields {
  readonly type: string;
  readonly id?: unknown;
  readonly status?: unknown;
  readonly call_id?: unknown;
  readonly name?: unknown;
  readonly input?: unknown;
  readonly output?: unknown;
}

const textIn = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
