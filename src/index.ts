export type { ClientErrorFields } from './client/client-error.ts';
export { ClientError } from './client/client-error.ts';
export type { Events, OpenReader } from './client/events.ts';
export type { Break, FollowOptions, Reconnect, RunsFilter } from './client/follow.ts';
export type { Input, PartInput, Reply } from './client/input.ts';
export type {
  CallOptions,
  OnceOptions,
  Rivulet,
  RunOptions,
  StartOptions,
  WatchOptions,
  WatchRunsOptions,
} from './client/rivulet.ts';
export type {
  Agent,
  AgentContext,
  AgentFunction,
  AgentLog,
  AgentManifestInput,
  AgentOptions,
  AgentOutput,
  AgentResult,
  AgentSession,
  AnyResult,
  Awaitable,
  AwaitOptions,
  Callbag,
  Continues,
  FunctionReturning,
  IfBusy,
  IfRight,
  NotAgentOutput,
  OnDisconnect,
  ToolOptions,
  WrongOutput,
} from './core/agent.ts';
export { defineAgent, EndOfWork } from './core/agent.ts';
export { type CutOff, cutOffNotes, cutOffOf, isInterrupted } from './core/cut-off.ts';
export { AgentError } from './core/errors.ts';
export { file } from './core/file.ts';
export { fold, reduce } from './core/fold.ts';
export { transcriptOf } from './core/history.ts';
export type { ModelCallReport } from './core/model-call.ts';
export type { HasText, PatchOperation } from './core/parts.ts';
export { citation, json, progress, sharedState, statePatch, textOf, trajectory } from './core/parts.ts';
export type { LeaseHolder } from './core/ports/lease.ts';
export type {
  Delivery,
  DeliveryFilter,
  DeliveryResult,
  NewDelivery,
  Outbox,
  PendingDeliveries,
  UrlFailures,
} from './core/ports/outbox.ts';
export type { QuotaRule, QuotaState, Quotas } from './core/ports/quotas.ts';
export type { RunClaims } from './core/ports/run-claims.ts';
export type {
  AgentFigures,
  OpenRuns,
  RunFilter,
  RunLists,
  StatusFilter,
  StatusPosition,
} from './core/ports/run-lists.ts';
export type {
  Batch,
  Extras,
  Key,
  Outcome,
  Rejected,
  RunNotification,
  RunRow,
  RunStore,
  SharedColumn,
  SharedValue,
  TargetsChanged,
  Watch,
  When,
  Write,
  WrittenRow,
} from './core/ports/run-store.ts';
export type { Resource, SessionRow, SessionStore } from './core/ports/session-store.ts';
export type { Cutoffs, Partitions, Store } from './core/ports/store.ts';
export type { Principal, Scope } from './core/principal.ts';
export type { AgentReply, ValueOf } from './core/reply.ts';
export type { AgentRequest, ClientTool, RunInput } from './core/request.ts';
export { canBecome, isFinal, isSettled, transitions } from './core/run-state.ts';
export { approvalParts, type Said, type SaidCall, saidIn } from './core/said.ts';
export type { ToolResult } from './core/tool-calls.ts';
export type { Hosted } from './engine/agents/registry.ts';
export { Registry } from './engine/agents/registry.ts';
export type { Dispatcher, Execute, Place } from './engine/dispatch/dispatcher.ts';
export type { Limits, RunTtlByOwner } from './engine/limits.ts';
export type { Authenticate, AuthOptions, AuthRequest } from './http/auth/credentials.ts';
export type { JwtOptions } from './http/auth/jwt.ts';
export type { KeyRecord } from './http/auth/key-records.ts';
export type { ConnectionLimits, HttpLimits } from './http/limits/limits.ts';
export type { MetricsAddress } from './http/metrics/metrics-server.ts';
export type { ForeignOptions } from './http/outbound/remote-fetch.ts';
export type { NameOptions } from './http/pages/allowed-origins.ts';
export * from './schema/agent.ts';
export * from './schema/api.ts';
export * from './schema/diagnostic.ts';
export * from './schema/error.ts';
export * from './schema/event.ts';
export * from './schema/message.ts';
export * from './schema/run.ts';
export * from './schema/scalars.ts';
export * from './schema/session.ts';
export * from './schema/webhook.ts';
export type { Backend, OnWarning } from './server/backend.ts';
export { openBackend } from './server/backend.ts';
export type { CustomPrincipal } from './server/in-process.ts';
export type { ProtocolName, ServedProtocols } from './server/protocols.ts';
export type { HostOptions, Runtime, RuntimeLog, RuntimeOptions } from './server/runtime.ts';
export { createRuntime } from './server/runtime.ts';
export type {
  ListenerOptions,
  RivuletOptions,
  RuntimeServerOptions,
  RuntimeServingOptions,
  ServerOptions,
  ServingOptions,
} from './server/server.ts';
export { createServer, rivulet } from './server/server.ts';
