import { isObject } from '../core/json.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { AgentsResponse, DiagnosticsResponse, ErasedData, RunsResponse } from '../schema/api.ts';
import type { ErrorBody } from '../schema/error.ts';
import type { Event } from '../schema/event.ts';
import type { Run, RunDetails } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import { runStatuses } from '../schema/statuses.ts';

/**
 * Checks what the client relies on in the server's answers. Other fields are passed on unchecked, because the client does not
 * read them. The schemas of src/schema check all fields, and would make the client several times as large.
 */
export type Shape<T> = (value: unknown) => value is T;

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);

/** Keys that are not named may have any value. */
function object<T = Record<string, unknown>>(checks: Readonly<Record<string, Check>>): Shape<T> {
  const entries = Object.entries(checks);
  return (value): value is T => isObject(value) && entries.every(([key, check]) => check(value[key]));
}

const part = object({
  name: optional(isText),
  content_type: optional(isText),
  content: optional(isText),
  content_encoding: optional(isText),
  content_url: optional(isText),
  metadata: optional(object({ kind: isText })),
});
const message = object({ role: isText, parts: listOf(part) });
export const isError = object<ErrorBody>({ code: isText, message: isText });

export const isRun = object<Run>({
  run_id: isText,
  agent_name: isText,
  status: (value) => runStatuses.some((status) => status === value),
  parked: optional(object({ reason: isText, at: isText })),
  created_at: isText,
  output: listOf(message),
  error: optional(isError),
  await_request: optional(object({ message, schema: optional(isObject) })),
});
// The client does not look into the input.
export const isRunDetails: Shape<RunDetails> = (value): value is RunDetails => isRun(value);
export const isRunsPage = object<RunsResponse>({ runs: listOf(isRun), next_cursor: optional(isText) });
export const isDiagnosticsPage = object<DiagnosticsResponse>({ diagnostics: listOf(object({ kind: isText })) });
export const isManifest = object<AgentManifest>({ name: isText });
export const isAgentsPage = object<AgentsResponse>({ agents: listOf(isManifest) });
export const isSession = object<Session>({ history: listOf(isText) });

export const isJson = (_value: unknown): _value is unknown => true;

/** What events carry, by its key. */
const carried = { run: isRun, message, part, generic: isObject, error: isError };

/**
 * An event carries a value under the first word of its type, and `message.part` carries a `part`. Each carried value is
 * well formed. Types that a newer server added are events as well.
 */
export const isEvent: Shape<Event> = (value): value is Event => {
  if (!isObject(value) || typeof value.type !== 'string') return false;
  const needed = value.type === 'message.part' ? 'part' : value.type.split('.')[0];
  return Object.entries(carried).every(([key, check]) => (key in value ? check(value[key]) : key !== needed));
};

export const isErased = object<ErasedData>({});
