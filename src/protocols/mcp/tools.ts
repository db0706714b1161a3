import { Type } from '@sinclair/typebox';
import { compareText } from '../../core/collections.ts';
import { cut } from '../../core/json.ts';
import { compile } from '../../core/validate.ts';
import type { Access } from '../../engine/access.ts';
import { checkAgainst } from '../../engine/agents/json-schema.ts';
import { toolName } from '../../engine/agents/registry.ts';
import { sessionIdFor } from '../../engine/ids.ts';
import type { AgentManifest } from '../../schema/agent.ts';
import type { RunCreateRequest } from '../../schema/api.ts';
import { RpcError } from './json-rpc.ts';

// An agent is a tool: its name, its description, and the schemas that its manifest states.

/** What the call of a tool without a schema of its own has. */
const TextInput = Type.Object({
  input: Type.String({ description: 'what the agent is asked' }),
  session_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_000,
      description: 'any text: calls with the same one are a conversation, whose messages the agent has',
    }),
  ),
});
const checkText = compile(TextInput, 'arguments');

// A plain copy: TypeBox's schemas have symbols. Further arguments are allowed and ignored: models add some now and then,
// and clients that check a call against the schema would refuse it.
const textSchema: object = JSON.parse(JSON.stringify(TextInput));

const toolOf = (manifest: AgentManifest): object => {
  const { title, input_schema, output_schema } = manifest.metadata?.tool ?? {};
  return {
    name: toolName(manifest),
    title,
    description: manifest.description,
    inputSchema: input_schema ?? textSchema,
    outputSchema: output_schema,
  };
};

/** Tools of a page. */
const pageSize = 100;

/** The tools after a cursor, which is the name of a tool. They are sorted, so that pages never overlap. */
export function toolsAfter(own: Access, cursor: unknown): { tools: object[]; nextCursor?: string } {
  if (cursor !== undefined && (typeof cursor !== 'string' || !/^[\w.-]{1,128}$/.test(cursor))) {
    throw new RpcError('invalidParams', 'params.cursor: expected the nextCursor of a page');
  }
  const all = own.tools().map((manifest) => ({ name: toolName(manifest), manifest }));
  const rest = all
    .filter(({ name }) => cursor === undefined || name > cursor)
    .sort((a, b) => compareText(a.name, b.name));
  const page = rest.slice(0, pageSize);
  const last = page.at(-1);
  return {
    tools: page.map(({ manifest }) => toolOf(manifest)),
    ...(rest.length > pageSize && last !== undefined && { nextCursor: last.name }),
  };
}

/** @throws RpcError for a tool that the caller does not have */
export function findTool(own: Access, name: string): AgentManifest {
  const manifest = own.tool(name);
  if (manifest !== undefined) return manifest;
  throw new RpcError('invalidParams', `params.name: there is no tool ${cut(name, 128)}; tools/list has them all`);
}

/** The schema of the data that a tool answers with; undefined where its agent states none, or is there no more. */
export const outputSchemaOf = (own: Access, agent: string): Readonly<Record<string, unknown>> | undefined =>
  own.tools().find(({ name }) => name === agent)?.metadata?.tool?.output_schema;

/** The request for a run that a call makes. @throws RivuletError `validation_failed` for arguments that do not fit */
export function runOf({ name, metadata }: AgentManifest, args: Readonly<Record<string, unknown>>): RunCreateRequest {
  const schema = metadata?.tool?.input_schema;
  if (schema === undefined) {
    const { input, session_id } = checkText(args);
    const parts = [{ content_type: 'text/plain', content: input }];
    return { agent_name: name, input: [{ parts }], ...(session_id && { session_id: sessionIdFor(session_id) }) };
  }
  const content = JSON.stringify(args);
  checkAgainst(schema, { path: 'arguments', value: args, chars: content.length });
  return { agent_name: name, input: [{ parts: [{ content_type: 'application/json', content }] }] };
}
