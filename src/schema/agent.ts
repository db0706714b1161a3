import { type Static, Type } from '@sinclair/typebox';
import { DateTime, Email, MediaType, Uri } from './scalars.ts';

/** RFC 1123 DNS label, 1 to 63 characters, unique in the service. */
export const AgentName = Type.String({
  minLength: 1,
  maxLength: 63,
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  description: 'a DNS label: 1 to 63 lower-case letters, digits and hyphens, with no hyphen at its ends',
});
export type AgentName = Static<typeof AgentName>;

export const Person = Type.Object(
  { name: Type.String(), email: Type.Optional(Email), url: Type.Optional(Uri) },
  { $id: 'Person', description: 'author or contributor' },
);
export type Person = Static<typeof Person>;

export const Capability = Type.Object(
  { name: Type.String(), description: Type.String() },
  { $id: 'Capability', description: 'something the agent can do' },
);
export type Capability = Static<typeof Capability>;

export const Link = Type.Object(
  {
    type: Type.Union([
      Type.Literal('source-code'),
      Type.Literal('container-image'),
      Type.Literal('homepage'),
      Type.Literal('documentation'),
    ]),
    url: Uri,
  },
  { $id: 'Link', description: 'an address that belongs to the agent' },
);
export type Link = Static<typeof Link>;

export const Dependency = Type.Object(
  {
    type: Type.Union([Type.Literal('agent'), Type.Literal('tool'), Type.Literal('model')]),
    name: Type.String(),
  },
  { $id: 'Dependency', description: 'an agent, tool or model that the agent uses' },
);
export type Dependency = Static<typeof Dependency>;

/** An input to try an agent with. */
export const Example = Type.Union(
  [
    Type.String(),
    Type.Object({ title: Type.String({ description: 'shown instead of the prompt' }), prompt: Type.String() }),
  ],
  { $id: 'Example', description: 'an input to try the agent with' },
);
export type Example = Static<typeof Example>;

/** How the agent is offered where agents are tools of models, or skills of other agents. */
export const AgentTool = Type.Object(
  {
    name: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_.-]{1,128}$',
        description: 'letters, digits, "_", "." and "-", at most 128; default: the name of the agent',
      }),
    ),
    title: Type.Optional(Type.String({ description: 'shown to people instead of the name' })),
    input_schema: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'JSON Schema of an object: the input is one JSON part then; default: a text',
      }),
    ),
    output_schema: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'JSON Schema of an object, which the last JSON part of the output has to fit',
      }),
    ),
    long_running: Type.Optional(
      Type.Boolean({ description: 'runs may take minutes: a client that can do so is given a task to ask for' }),
    ),
  },
  { $id: 'AgentTool', description: 'the agent as a tool' },
);
export type AgentTool = Static<typeof AgentTool>;

/** An agent's description of itself. Every key is optional; unknown keys are passed through. */
export const AgentMetadata = Type.Object(
  {
    annotations: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    documentation: Type.Optional(Type.String({ description: 'Markdown' })),
    license: Type.Optional(Type.String({ description: 'SPDX identifier' })),
    programming_language: Type.Optional(Type.String()),
    natural_languages: Type.Optional(Type.Array(Type.String({ description: 'ISO 639-1 code' }))),
    framework: Type.Optional(Type.String()),
    capabilities: Type.Optional(Type.Array(Capability)),
    domains: Type.Optional(Type.Array(Type.String())),
    tags: Type.Optional(Type.Array(Type.String())),
    examples: Type.Optional(Type.Array(Example, { maxItems: 20 })),
    tool: Type.Optional(AgentTool),
    created_at: Type.Optional(DateTime),
    updated_at: Type.Optional(DateTime),
    author: Type.Optional(Person),
    contributors: Type.Optional(Type.Array(Person)),
    links: Type.Optional(Type.Array(Link)),
    dependencies: Type.Optional(Type.Array(Dependency)),
    recommended_models: Type.Optional(Type.Array(Type.String())),
  },
  { $id: 'AgentMetadata', description: 'what an agent says about itself', additionalProperties: true },
);
export type AgentMetadata = Static<typeof AgentMetadata>;

/** Figures of the runs that this service has executed; absent until the first one ends. */
export const AgentStatus = Type.Object(
  {
    avg_run_tokens: Type.Optional(Type.Number({ minimum: 0, description: 'tokens, mean over ended runs' })),
    avg_run_time_seconds: Type.Optional(Type.Number({ minimum: 0, description: 'seconds, mean over ended runs' })),
    success_rate: Type.Optional(
      Type.Number({ minimum: 0, maximum: 100, description: 'completed / (completed + failed), in per cent' }),
    ),
  },
  { $id: 'AgentStatus', description: 'figures of the runs that this service has executed' },
);
export type AgentStatus = Static<typeof AgentStatus>;

/** Where the clients of a protocol find an agent. */
export const AgentAddress = Type.Object(
  {
    protocol: Type.String({ description: 'acp for this API; else the name of another protocol that is served' }),
    url: Type.String({ description: 'absolute, for the client of the protocol; {run_id} in it stands for a run' }),
  },
  { $id: 'AgentAddress', description: 'where the clients of a protocol find the agent' },
);
export type AgentAddress = Static<typeof AgentAddress>;

/** The published description of an agent. */
export const AgentManifest = Type.Object(
  {
    name: AgentName,
    description: Type.String(),
    input_content_types: Type.Array(MediaType, { minItems: 1, description: 'wildcards allowed: image/*' }),
    output_content_types: Type.Array(MediaType, { minItems: 1, description: 'wildcards allowed: image/*' }),
    metadata: Type.Optional(AgentMetadata),
    status: Type.Optional(AgentStatus),
    addresses: Type.Optional(Type.Array(AgentAddress, { description: 'one for each protocol; only of a server' })),
  },
  { $id: 'AgentManifest', description: 'the published description of an agent' },
);
export type AgentManifest = Static<typeof AgentManifest>;
