import { type Static, Type } from '@sinclair/typebox';
import { AgentManifest } from './agent.ts';
import { Event } from './event.ts';
import { MessageInput } from './message.ts';
import { AwaitResumeInput, RunMode } from './run.ts';
import { Uuid } from './scalars.ts';
import { SessionInput } from './session.ts';

export const PingResponse = Type.Object({}, { $id: 'PingResponse' });
export type PingResponse = Static<typeof PingResponse>;

export const AgentsQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 10 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
});
export type AgentsQuery = Static<typeof AgentsQuery>;

export const AgentsResponse = Type.Object({ agents: Type.Array(AgentManifest) }, { $id: 'AgentsResponse' });
export type AgentsResponse = Static<typeof AgentsResponse>;

// Not AgentName: a name that cannot exist is an agent that is not found, as any other unknown one.
export const AgentParams = Type.Object({ name: Type.String() });
export type AgentParams = Static<typeof AgentParams>;

export const RunCreateRequest = Type.Object(
  {
    agent_name: Type.String({ minLength: 1 }),
    input: Type.Array(MessageInput, { minItems: 1 }),
    session_id: Type.Optional(Uuid),
    session: Type.Optional(SessionInput),
    mode: Type.Optional(RunMode),
  },
  { $id: 'RunCreateRequest', description: 'null stands for an absent optional field; mode defaults to sync' },
);
export type RunCreateRequest = Static<typeof RunCreateRequest>;

export const RunResumeRequest = Type.Object(
  {
    run_id: Type.Optional(Uuid),
    await_resume: AwaitResumeInput,
    mode: RunMode,
  },
  { $id: 'RunResumeRequest' },
);
export type RunResumeRequest = Static<typeof RunResumeRequest>;

export const RunParams = Type.Object({ run_id: Uuid });
export type RunParams = Static<typeof RunParams>;

// A string, because a cursor that is no number gets its own answer instead of the schema's.
export const EventsQuery = Type.Object({
  after: Type.Optional(Type.String({ description: 'id of the last event already seen; Last-Event-ID wins over it' })),
});
export type EventsQuery = Static<typeof EventsQuery>;

export const RunEventsResponse = Type.Object({ events: Type.Array(Event) }, { $id: 'RunEventsResponse' });
export type RunEventsResponse = Static<typeof RunEventsResponse>;

export const SessionParams = Type.Object({ session_id: Uuid });
export type SessionParams = Static<typeof SessionParams>;

export const ResourceParams = Type.Object({ resource_id: Uuid });
export type ResourceParams = Static<typeof ResourceParams>;
