import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';

// The shapes of A2A 1.0, closed: a field that is not here is none of the protocol.

const closed = <Fields extends Record<string, TSchema>>(fields: Fields) =>
  Type.Object(fields, { additionalProperties: false });
const optional = Type.Optional;
const Text = Type.String();
const Id = Type.String({ minLength: 1 });
const Metadata = optional(Type.Record(Type.String(), Type.Unknown()));
const Utc = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$' });

const part = { metadata: Metadata, filename: optional(Text), mediaType: optional(Text) };
const Part = Type.Union([
  closed({ text: Text, ...part }),
  closed({ raw: Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$' }), ...part }),
  closed({ url: Text, ...part }),
  closed({ data: Type.Unknown(), ...part }),
]);
const Parts = Type.Array(Part, { minItems: 1 });

const Message = closed({
  messageId: Id,
  contextId: optional(Id),
  taskId: optional(Id),
  role: Type.Union([Type.Literal('ROLE_USER'), Type.Literal('ROLE_AGENT')]),
  parts: Parts,
  metadata: Metadata,
  extensions: optional(Type.Array(Text)),
  referenceTaskIds: optional(Type.Array(Text)),
});

const states = 'SUBMITTED WORKING COMPLETED FAILED CANCELED REJECTED INPUT_REQUIRED AUTH_REQUIRED'.split(' ');
const Status = closed({
  state: Type.Union(states.map((state) => Type.Literal(`TASK_STATE_${state}`))),
  message: optional(Message),
  timestamp: optional(Utc),
});

const Artifact = closed({
  artifactId: Id,
  name: optional(Text),
  description: optional(Text),
  parts: Parts,
  metadata: Metadata,
  extensions: optional(Type.Array(Text)),
});

const Task = closed({
  id: Id,
  contextId: Id,
  status: Status,
  artifacts: optional(Type.Array(Artifact)),
  history: optional(Type.Array(Message)),
  metadata: Metadata,
});

const update = { taskId: Id, contextId: Id, metadata: Metadata };
const Frame = Type.Union([
  closed({ task: Task }),
  closed({ message: Message }),
  closed({ statusUpdate: closed({ ...update, status: Status }) }),
  closed({
    artifactUpdate: closed({
      ...update,
      artifact: Artifact,
      append: optional(Type.Boolean()),
      lastChunk: optional(Type.Boolean()),
    }),
  }),
]);

const Url = Type.String({ pattern: '^https?://' });
const Requirements = optional(
  Type.Array(closed({ schemes: Type.Record(Type.String(), closed({ list: Type.Array(Text) })) })),
);
const Scheme = Type.Union([
  closed({ apiKeySecurityScheme: closed({ location: Text, name: Text, description: optional(Text) }) }),
  closed({
    httpAuthSecurityScheme: closed({ scheme: Text, bearerFormat: optional(Text), description: optional(Text) }),
  }),
]);
const Card = closed({
  name: Id,
  description: Text,
  version: Id,
  supportedInterfaces: Type.Array(
    closed({
      url: Url,
      protocolBinding: Type.Union(['JSONRPC', 'HTTP+JSON', 'GRPC'].map((one) => Type.Literal(one))),
      protocolVersion: Type.Literal('1.0'),
      tenant: optional(Text),
    }),
    { minItems: 1 },
  ),
  provider: optional(closed({ organization: Text, url: Url })),
  documentationUrl: optional(Url),
  iconUrl: optional(Url),
  capabilities: closed({
    streaming: optional(Type.Boolean()),
    pushNotifications: optional(Type.Boolean()),
    extendedAgentCard: optional(Type.Boolean()),
    extensions: optional(
      Type.Array(
        closed({ uri: Id, description: optional(Text), required: optional(Type.Boolean()), params: Metadata }),
      ),
    ),
  }),
  securitySchemes: optional(Type.Record(Type.String(), Scheme)),
  securityRequirements: Requirements,
  defaultInputModes: Type.Array(Text),
  defaultOutputModes: Type.Array(Text),
  skills: Type.Array(
    closed({
      id: Id,
      name: Id,
      description: Text,
      tags: Type.Array(Text),
      examples: optional(Type.Array(Text)),
      inputModes: optional(Type.Array(Text)),
      outputModes: optional(Type.Array(Text)),
      securityRequirements: Requirements,
    }),
  ),
});

const List = closed({
  tasks: Type.Array(Task),
  nextPageToken: Text,
  pageSize: Type.Integer(),
  totalSize: Type.Integer(),
});

const Info = closed({
  '@type': Type.Literal('type.googleapis.com/google.rpc.ErrorInfo'),
  reason: Type.String({ pattern: '^[A-Z][A-Z0-9_]+[A-Z0-9]$' }),
  domain: Id,
  metadata: optional(Type.Record(Type.String(), Text)),
});
const Rest = closed({
  error: closed({ code: Type.Integer(), status: Id, message: Id, details: Type.Array(Info, { minItems: 1 }) }),
});
const Rpc = closed({
  jsonrpc: Type.Literal('2.0'),
  id: Type.Union([Text, Type.Number(), Type.Null()]),
  error: closed({ code: Type.Integer(), message: Id, data: Type.Array(Info, { minItems: 1 }) }),
});

/** A shape, and what is wrong with a value. */
function shape<S extends TSchema>(schema: S) {
  const check = TypeCompiler.Compile(schema);
  return {
    problem: (value: unknown): string | undefined => {
      if (check.Check(value)) return undefined;
      const { path, message } = check.Errors(value).First() ?? {};
      return `${path} ${message}: ${JSON.stringify(value)}`;
    },
    of: (value: unknown): Static<S> => {
      if (check.Check(value)) return value;
      const { path, message } = check.Errors(value).First() ?? {};
      throw new Error(`${path} ${message}: ${JSON.stringify(value)}`);
    },
  };
}

export const StreamFrame = shape(Frame);
export const TaskShape = shape(Task);
export const SendAnswer = shape(closed({ task: Task }));
export const AgentCard = shape(Card);
export const TaskList = shape(List);
export const RestError = shape(Rest);
export const RpcError = shape(Rpc);

export type AnyTask = Static<typeof Task>;
export type AnyPart = Static<typeof Part>;

/** Adds a part as a reader shows it: text to text. A last part without text says nothing. */
export function joined(parts: readonly AnyPart[], more: readonly AnyPart[]): AnyPart[] {
  const all = [...parts];
  for (const one of more) {
    const last = all.at(-1);
    const isPlain = (a: AnyPart | undefined): a is { text: string } =>
      a !== undefined && 'text' in a && Object.keys(a).length === 1;
    if (isPlain(last) && isPlain(one)) all[all.length - 1] = { text: last.text + one.text };
    else all.push(one);
  }
  return all;
}

/** What a client has after a frame. */
export function foldFrame(task: AnyTask | undefined, data: unknown): AnyTask {
  const frame = StreamFrame.of(data);
  if ('task' in frame) return frame.task;
  if (task === undefined || 'message' in frame) throw new Error('the first frame is no task');
  if ('statusUpdate' in frame) return { ...task, status: frame.statusUpdate.status };
  const { artifact, append = false, lastChunk = false } = frame.artifactUpdate;
  const artifacts = [...(task.artifacts ?? [])];
  const at = artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
  const known = artifacts[at];
  if ((known !== undefined) !== append) throw new Error(`append is ${append}: ${JSON.stringify(data)}`);
  const isEnd = lastChunk && append && artifact.parts.every((part) => 'text' in part && part.text === '');
  if (known === undefined) artifacts.push({ ...artifact, parts: joined([], artifact.parts) });
  else {
    // As the official server's `ResultManager` does: an update may add metadata.
    const { metadata = known.metadata } = artifact;
    const parts = isEnd ? known.parts : joined(known.parts, artifact.parts);
    artifacts[at] = { ...known, parts, ...(metadata && { metadata }) };
  }
  return { ...task, artifacts };
}
