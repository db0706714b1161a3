import { type Static, Type } from '@sinclair/typebox';
import { AgentName } from './agent.ts';
import { ErrorBody } from './error.ts';
import { Message, MessageInput } from './message.ts';
import { DateTime, Uuid } from './scalars.ts';
import { runStatuses } from './statuses.ts';

export const RunMode = Type.Union([Type.Literal('sync'), Type.Literal('async'), Type.Literal('stream')], {
  $id: 'RunMode',
  description: 'how the response presents the run; every mode reads the same log',
});
export type RunMode = Static<typeof RunMode>;

export const RunStatus = Type.Union(
  runStatuses.map((status) => Type.Literal(status)),
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
    path: Type.Optional(
      Type.String({
        description: 'the call whose agent asks, as in its generic event; absent for the agent of the run',
      }),
    ),
    tool: Type.Optional(
      Type.Object(
        { name: Type.String({ minLength: 1 }), input: Type.Optional(Type.Record(Type.String(), Type.Unknown())) },
        { description: 'a tool of the client, whose output is asked for' },
      ),
    ),
  },
  { $id: 'AwaitRequest', description: 'what an awaiting run asks', additionalProperties: true },
);
export type AwaitRequest = Static<typeof AwaitRequest>;

/** The reply to an AwaitRequest, with the same `type`. */
export const AwaitResume = Type.Object(
  {
    type: Type.Literal('message'),
    message: Message,
    id: Type.Optional(Type.String()),
    channel: Type.Optional(
      Type.String({ description: 'the channel of the reply, such as api, playground, cli, in-process' }),
    ),
    received_at: Type.Optional(DateTime),
    principal: Type.Optional(Type.String({ description: 'the authenticated caller that replied, where one is known' })),
  },
  {
    $id: 'AwaitResume',
    additionalProperties: true,
    description: 'In run.in-progress: the reply that the run continues with. The server sets received_at and channel.',
  },
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
  { $id: 'AwaitResumeInput', description: 'the reply to the question of a run', additionalProperties: true },
);
export type AwaitResumeInput = Static<typeof AwaitResumeInput>;

/** A question that a run has asked, and its reply. The messages' `created_at` are the times of both. */
export const Question = Type.Object(
  {
    request: AwaitRequest,
    reply: Type.Optional(AwaitResume),
    position: Type.Integer({ minimum: 0, description: 'the number of messages of the output before the question' }),
  },
  { $id: 'Question', description: 'without a reply: the run still awaits it, ended, or withdrew the question' },
);
export type Question = Static<typeof Question>;

/** What the agent has reported with `context.usage` until the run is final or awaits; absent where it reports nothing. */
export const RunUsage = Type.Object(
  {
    tokens: Type.Number({ minimum: 0, description: 'tokens of language models, as the agent counts them' }),
    input_tokens: Type.Optional(Type.Number({ minimum: 0, description: 'of these, those of prompts' })),
    output_tokens: Type.Optional(Type.Number({ minimum: 0, description: 'of these, generated ones' })),
  },
  { $id: 'RunUsage' },
);
export type RunUsage = Static<typeof RunUsage>;

/** Why a run waits to be tried again: its agent did not repeat what the run has recorded. */
export const Parked = Type.Object(
  { reason: Type.String({ description: 'what was expected, and what came instead' }), at: DateTime },
  { $id: 'Parked', description: 'the run keeps all that it has, and goes on with POST /runs/{run_id}/retry' },
);
export type Parked = Static<typeof Parked>;

/** One execution of an agent: the state that its event log folds into. */
export const Run = Type.Object(
  {
    run_id: Uuid,
    agent_name: AgentName,
    session_id: Type.Optional(Uuid),
    status: RunStatus,
    parked: Type.Optional(Parked),
    await_request: Type.Optional(AwaitRequest),
    await_resume: Type.Optional(AwaitResume),
    questions: Type.Optional(
      Type.Array(Question, { description: 'all questions, in order; in events, only the final one has them' }),
    ),
    output: Type.Array(Message),
    error: Type.Optional(ErrorBody),
    cancel_reason: Type.Optional(
      Type.String({ description: 'why the run was cancelled, where the server cancelled it for a reason of its own' }),
    ),
    usage: Type.Optional(RunUsage),
    created_at: DateTime,
    finished_at: Type.Optional(DateTime),
  },
  { $id: 'Run', description: 'one execution of an agent' },
);
export type Run = Static<typeof Run>;

/** A run as `GET /runs/{run_id}` answers it: with its input. */
export const RunDetails = Type.Object(
  { ...Run.properties, input: Type.Array(Message, { description: 'the messages that the run was made with' }) },
  { $id: 'RunDetails', description: 'a Run with its input' },
);
export type RunDetails = Static<typeof RunDetails>;

/** A Run in a list. It has no output, so that the size of a page stays limited. */
export const RunSummary = Type.Object(
  {
    ...Run.properties,
    output: Type.Array(Message, { maxItems: 0, description: 'empty; GET /runs/{run_id} has it' }),
    title: Type.String({ description: 'the beginning of the text of its input; empty where that has no text' }),
  },
  { $id: 'RunSummary', description: 'a Run in a list, without its output' },
);
export type RunSummary = Static<typeof RunSummary>;
