import { type Static, Type } from '@sinclair/typebox';
import { AgentName } from './agent.ts';
import { ErrorBody } from './error.ts';
import { Message, MessageInput } from './message.ts';
import { DateTime, Uuid } from './scalars.ts';

export const RunMode = Type.Union([Type.Literal('sync'), Type.Literal('async'), Type.Literal('stream')], {
  $id: 'RunMode',
  description: 'how the response presents the run; every mode reads the same log',
});
export type RunMode = Static<typeof RunMode>;

export const RunStatus = Type.Union(
  [
    Type.Literal('created'),
    Type.Literal('in-progress'),
    Type.Literal('awaiting'),
    Type.Literal('cancelling'),
    Type.Literal('cancelled'),
    Type.Literal('completed'),
    Type.Literal('failed'),
  ],
  { $id: 'RunStatus' },
);
export type RunStatus = Static<typeof RunStatus>;

/** What a run awaits. The protocol knows only the type `message` so far. */
export const AwaitRequest = Type.Object(
  {
    type: Type.Literal('message'),
    message: Message,
    id: Type.Optional(Type.String({ description: 'the number of the question in its run; a resume may name it' })),
    schema: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema of the reply' })),
    expires_at: Type.Optional(DateTime),
  },
  { $id: 'AwaitRequest', additionalProperties: true },
);
export type AwaitRequest = Static<typeof AwaitRequest>;

/** The reply to an AwaitRequest, with the same `type`. */
export const AwaitResume = Type.Object(
  { type: Type.Literal('message'), message: Message, id: Type.Optional(Type.String()) },
  { $id: 'AwaitResume', additionalProperties: true },
);
export type AwaitResume = Static<typeof AwaitResume>;

/** An AwaitResume as a client sends it. The type defaults to `message`, and is checked against the run, not here. */
export const AwaitResumeInput = Type.Object(
  {
    type: Type.Optional(Type.String({ minLength: 1, description: 'message where it is absent' })),
    message: Type.Optional(MessageInput),
    id: Type.Optional(
      Type.String({ description: 'the id of the await_request that it answers; default: the open one' }),
    ),
  },
  { $id: 'AwaitResumeInput', additionalProperties: true },
);
export type AwaitResumeInput = Static<typeof AwaitResumeInput>;

/** One execution of an agent: the state that its event log folds into. */
export const Run = Type.Object(
  {
    run_id: Uuid,
    agent_name: AgentName,
    session_id: Type.Optional(Uuid),
    status: RunStatus,
    await_request: Type.Optional(AwaitRequest),
    output: Type.Array(Message),
    error: Type.Optional(ErrorBody),
    created_at: DateTime,
    finished_at: Type.Optional(DateTime),
  },
  { $id: 'Run' },
);
export type Run = Static<typeof Run>;

/** A Run in a list. It has no output, so that the size of a page stays limited. */
export const RunSummary = Type.Object(
  { ...Run.properties, output: Type.Array(Message, { maxItems: 0, description: 'empty; GET /runs/{run_id} has it' }) },
  { $id: 'RunSummary' },
);
export type RunSummary = Static<typeof RunSummary>;
