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
