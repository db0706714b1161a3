import { type Static, Type } from '@sinclair/typebox';
import { AgentManifest } from './agent.ts';
import { Diagnostic } from './diagnostic.ts';
import { Event } from './event.ts';
import { MessageInput } from './message.ts';
import { AwaitResumeInput, RunMode, RunStatus, RunSummary } from './run.ts';
import { DateTime, Uuid } from './scalars.ts';
import { SessionInput } from './session.ts';
import { Webhook } from './webhook.ts';

export const PingResponse = Type.Object({}, { $id: 'PingResponse', description: 'an empty object' });
export type PingResponse = Static<typeof PingResponse>;

export const HealthResponse = Type.Object(
  { status: Type.Union([Type.Literal('ok'), Type.Literal('ready')]) },
  { $id: 'HealthResponse', description: 'ok: the process answers. ready: its store does, too' },
);
export type HealthResponse = Static<typeof HealthResponse>;

export const AgentsQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 10 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
});
export type AgentsQuery = Static<typeof AgentsQuery>;

export const AgentsResponse = Type.Object(
  { agents: Type.Array(AgentManifest) },
  { $id: 'AgentsResponse', description: 'a page of manifests, by name' },
);
export type AgentsResponse = Static<typeof AgentsResponse>;

// Not AgentName: an invalid name is answered like an unknown one, with 404.
export const AgentParams = Type.Object({ name: Type.String() });
export type AgentParams = Static<typeof AgentParams>;

export const RunCreateRequest = Type.Object(
  {
    // Longer than any valid name: an invalid name is answered like an unknown one, with 404.
    agent_name: Type.String({ minLength: 1, maxLength: 255 }),
    input: Type.Array(MessageInput, { minItems: 1, maxItems: 1_000 }),
    session_id: Type.Optional(Uuid),
    session: Type.Optional(SessionInput),
    webhook: Type.Optional(Webhook),
    mode: Type.Optional(RunMode),
  },
  { $id: 'RunCreateRequest', description: 'null stands for an absent optional field; mode defaults to sync' },
);
export type RunCreateRequest = Static<typeof RunCreateRequest>;

export const RunResumeRequest = Type.Object(
  {
    run_id: Type.Optional(Uuid),
    await_resume: AwaitResumeInput,
    mode: Type.Optional(RunMode),
  },
  { $id: 'RunResumeRequest', description: 'null stands for an absent optional field; mode defaults to sync' },
);
export type RunResumeRequest = Static<typeof RunResumeRequest>;

export const RunAgainRequest = Type.Object(
  {
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        default: 0,
        description: 'the id of the last event that is repeated; 0 and 1: the run begins anew with the same input',
      }),
    ),
  },
  { $id: 'RunAgainRequest', description: 'the part of a run that a new run repeats' },
);
export type RunAgainRequest = Static<typeof RunAgainRequest>;

const OnDisconnect = Type.String({
  pattern: '^(continue|cancel|grace=\\d{1,6}(\\.\\d{1,3})?)$',
  description: 'continue, cancel or grace=SECONDS: what happens to the run when its last client disconnects',
});

/** The headers of a request for a run that Rivulet reads. */
export const RunHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'requests with the same key and body make one run',
    }),
  ),
  'if-busy': Type.Optional(
    Type.Union([Type.Literal('parallel'), Type.Literal('enqueue'), Type.Literal('reject'), Type.Literal('interrupt')], {
      description: 'if the session has a run that is not final: run beside it, after it, not at all, or instead of it',
    }),
  ),
  'on-disconnect': Type.Optional(OnDisconnect),
  'rivulet-channel': Type.Optional(
    Type.String({
      pattern: '^[a-z\\d][a-z\\d_.-]{0,63}$',
      description: 'the channel of a reply, such as playground, cli or slack; the run records it; default: api',
    }),
  ),
  // Without a pattern: W3C Trace Context asks servers to ignore what they cannot read.
  traceparent: Type.Optional(Type.String({ description: 'W3C trace context, for the traces of the run' })),
  tracestate: Type.Optional(Type.String({ description: 'W3C trace context, beside traceparent' })),
});
export type RunHeaders = Static<typeof RunHeaders>;

/** An owner, as `ownerOf` of `core/principal.ts` names it. */
export const ownerPattern = '^(key|jwt|custom|tenant):\\S+$';
const Owner = Type.String({
  pattern: ownerPattern,
  maxLength: 1_000,
  description: 'an owner, such as key:alice or tenant:acme; another one than the caller needs the scope admin',
});

export const OwnerQuery = Type.Object({ owner: Type.Optional(Owner) });
export type OwnerQuery = Static<typeof OwnerQuery>;

export const ErasedData = Type.Object(
  { runs: Type.Integer(), sessions: Type.Integer() },
  { $id: 'ErasedData', description: 'how much was erased' },
);
export type ErasedData = Static<typeof ErasedData>;

export const RunsQuery = Type.Object({
  agent_name: Type.Optional(Type.String({ maxLength: 255 })),
  session_id: Type.Optional(Uuid),
  status: Type.Optional(RunStatus),
  parked: Type.Optional(Type.Literal(true, { description: 'only parked runs' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  cursor: Type.Optional(Uuid),
  owner: Type.Optional(Owner),
});
export type RunsQuery = Static<typeof RunsQuery>;

export const RunsResponse = Type.Object(
  {
    runs: Type.Array(RunSummary, { description: 'newest first' }),
    next_cursor: Type.Optional(Type.String({ description: 'where the next page begins; absent on the last one' })),
  },
  { $id: 'RunsResponse', description: 'a page of runs, newest first' },
);
export type RunsResponse = Static<typeof RunsResponse>;

export const RunParams = Type.Object({ run_id: Uuid });
export type RunParams = Static<typeof RunParams>;

// A string, so that a cursor that is not a number gets the error `cursor_invalid`.
export const EventsQuery = Type.Object({
  after: Type.Optional(
    Type.String({ description: 'id of the last event that the client has; the header Last-Event-ID overrides it' }),
  ),
  lastEventId: Type.Optional(
    Type.String({ description: 'as the header Last-Event-ID, for a polyfill that sends it so when it reconnects' }),
  ),
  ticket: Type.Optional(Type.String({ description: 'a stream ticket, instead of a key or token' })),
});
export type EventsQuery = Static<typeof EventsQuery>;

export const RunEventsResponse = Type.Object(
  { events: Type.Array(Event) },
  { $id: 'RunEventsResponse', description: 'the events after the cursor, oldest first' },
);
export type RunEventsResponse = Static<typeof RunEventsResponse>;

export const DiagnosticsQuery = Type.Object({
  after: Type.Optional(
    Type.Integer({ minimum: 0, default: 0, description: 'how many entries to pass over: `next` of the page before' }),
  ),
});
export type DiagnosticsQuery = Static<typeof DiagnosticsQuery>;

export const DiagnosticsResponse = Type.Object(
  {
    diagnostics: Type.Array(Diagnostic, { description: 'oldest first' }),
    next: Type.Optional(Type.Integer({ description: '`after` of the next page; absent on the last one' })),
  },
  { $id: 'DiagnosticsResponse', description: 'model calls and lines of the log of a run, oldest first' },
);
export type DiagnosticsResponse = Static<typeof DiagnosticsResponse>;

export const StreamTicketQuery = Type.Object({
  cookie: Type.Optional(
    Type.Boolean({ default: false, description: 'true: the ticket comes as a cookie, and the address has none' }),
  ),
});
export type StreamTicketQuery = Static<typeof StreamTicketQuery>;

export const StreamTicketResponse = Type.Object(
  {
    url: Type.String({ description: 'address of the events for an EventSource, relative to the server' }),
    expires_at: DateTime,
  },
  { $id: 'StreamTicket', description: 'a permission to read the events of one run' },
);
export type StreamTicketResponse = Static<typeof StreamTicketResponse>;

export const SessionParams = Type.Object({ session_id: Uuid });
export type SessionParams = Static<typeof SessionParams>;

export const ResourceParams = Type.Object({ resource_id: Uuid });
export type ResourceParams = Static<typeof ResourceParams>;
