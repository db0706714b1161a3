import { type Static, Type } from '@sinclair/typebox';
import { ErrorBody } from './error.ts';
import { Message, MessagePart } from './message.ts';
import { Run } from './run.ts';
import { loggedStatuses } from './statuses.ts';

/** What a run event says: the status that the run has now. */
export const RunEventType = Type.Union(loggedStatuses.map((status) => Type.Literal(`run.${status}` as const)));
export type RunEventType = Static<typeof RunEventType>;

/** A change of a run's status. It carries the Run; only the final event carries its output. */
export const RunEvent = Type.Object(
  {
    type: RunEventType,
    run: Run,
  },
  { $id: 'RunEvent', description: 'a change of a run’s status; only the final event has the output' },
);
export type RunEvent = Static<typeof RunEvent>;

export const MessageEvent = Type.Object(
  { type: Type.Union([Type.Literal('message.created'), Type.Literal('message.completed')]), message: Message },
  { $id: 'MessageEvent', description: 'a message begins or is complete' },
);
export type MessageEvent = Static<typeof MessageEvent>;

/** One emission of the agent: a token, or any other part. */
export const PartEvent = Type.Object(
  { type: Type.Literal('message.part'), part: MessagePart },
  { $id: 'PartEvent', description: 'a token of the agent, or another part' },
);
export type PartEvent = Static<typeof PartEvent>;

/** An event of the agent's own kind; readers see it, but it is not part of the Run. */
export const GenericEvent = Type.Object(
  { type: Type.Literal('generic'), generic: Type.Record(Type.String(), Type.Unknown()) },
  { $id: 'GenericEvent', description: 'an event of the agent’s own' },
);
export type GenericEvent = Static<typeof GenericEvent>;

export const ErrorEvent = Type.Object(
  { type: Type.Literal('error'), error: ErrorBody },
  { $id: 'ErrorEvent', description: 'the stream cannot continue' },
);
export type ErrorEvent = Static<typeof ErrorEvent>;

export const Event = Type.Union([RunEvent, MessageEvent, PartEvent, GenericEvent, ErrorEvent], {
  $id: 'Event',
  description: 'one numbered entry of a run’s log',
});
export type Event = Static<typeof Event>;
