export type { Backend, BackendOptions } from './backend.ts';
export { openBackend } from './backend.ts';
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
  Awaitable,
  AwaitOptions,
  Callbag,
  Continues,
  IfBusy,
  OnDisconnect,
  ToolOptions,
} from './core/agent.ts';
export { defineAgent, EndOfWork } from './core/agent.ts';
export type { Dispatcher, Execute, Lease, Released } from './core/dispatcher.ts';
export { AgentError } from './core/errors.ts';
export { file } from './core/file.ts';
export type { ModelCallReport } from './core/model-call.ts';
export type {
  Delivery,
  DeliveryFilter,
  DeliveryResult,
  NewDelivery,
  Outbox,
  PendingDeliveries,
  UrlFailures,
} from './core/outbox.ts';
export type { HasText, PatchOperation } from './core/parts.ts';
export { citation, json, progress, sharedState, statePatch, textOf, trajectory } from './core/parts.ts';
export type { Principal, Scope } from './core/principal.ts';
export type { QuotaRule, QuotaState, Quotas } from './core/quotas.ts';
export type { AgentReply, ValueOf } from './core/reply.ts';
export type { AgentRequest, ClientTool, RunInput } from './core/request.ts';
export {
  type CutOff,
  canBecome,
  cutOffNotes,
  cutOffOf,
  fold,
  isFinal,
  isInterrupted,
  isSettled,
  reduce,
  transcriptOf,
  transitions,
} from './core/run-state.ts';
export { approvalParts, type Said, type SaidCall, saidIn } from './core/said.ts';
export type {
  AgentFigures,
  Batch,
  Extras,
  Key,
  OpenRuns,
  Outcome,
  Rejected,
  Resource,
  Retention,
  RunFilter,
  RunNotification,
  RunRow,
  SessionRow,
  StatusFilter,
  StatusPosition,
  Store,
  TargetsChanged,
  When,
  Write,
  WrittenRow,
} from './core/store.ts';
export type { ToolResult } from './core/tool-calls.ts';
export type { Limits, RunTtlByOwner } from './engine/limits.ts';
export type { Hosted } from './engine/registry.ts';
export { Registry } from './engine/registry.ts';
export type { NameOptions } from './http/allowed-origins.ts';
export type { Authenticate, AuthOptions, AuthRequest } from './http/auth/credentials.ts';
export type { JwtOptions } from './http/auth/jwt.ts';
export type { KeyRecord } from './http/auth/key-records.ts';
export type { ConnectionLimits, HttpLimits } from './http/limits.ts';
export type { MetricsAddress } from './http/metrics/metrics-server.ts';
export type { ForeignOptions } from './http/remote-fetch.ts';
export type { CustomPrincipal } from './in-process.ts';
export type { ProtocolName, ServedProtocols } from './protocols.ts';
export type { HostOptions, Runtime, RuntimeLog, RuntimeOptions } from './runtime.ts';
export { createRuntime } from './runtime.ts';
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
export type {
  ListenerOptions,
  RivuletOptions,
  RuntimeServerOptions,
  RuntimeServingOptions,
  ServerOptions,
  ServingOptions,
} from './server.ts';
export { createServer, rivulet } from './server.ts';
