export type { Backend, BackendOptions } from './backend.ts';
export { openBackend } from './backend.ts';
export { ClientError } from './client/client-error.ts';
export type { Events } from './client/events.ts';
export type { Break, FollowOptions, Reconnect } from './client/follow.ts';
export type { Input, PartInput, Reply } from './client/input.ts';
export type {
  CallOptions,
  OnceOptions,
  Rivulet,
  RunOptions,
  StartOptions,
  WatchOptions,
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
  IfBusy,
  OnDisconnect,
} from './core/agent.ts';
export { defineAgent } from './core/agent.ts';
export { AgentError } from './core/errors.ts';
export { citation, file, json, progress, textOf, trajectory } from './core/parts.ts';
export { canBecome, fold, isFinal, isSettled, reduce, transitions } from './core/run-state.ts';
export type { Batch, RunRow, Store, Write } from './core/store.ts';
export type { HostOptions, Runtime, RuntimeLog, RuntimeOptions } from './runtime.ts';
export { createRuntime } from './runtime.ts';
export * from './schema/agent.ts';
export * from './schema/api.ts';
export * from './schema/error.ts';
export * from './schema/event.ts';
export * from './schema/message.ts';
export * from './schema/run.ts';
export * from './schema/scalars.ts';
export * from './schema/session.ts';
export type * from './server.ts';
export { createServer, rivulet } from './server.ts';
