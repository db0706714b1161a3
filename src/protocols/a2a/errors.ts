import type { FastifyReply } from 'fastify';
import type { Refusal } from '../../http/requests/errors.ts';
import { contentTypeFor } from './negotiation.ts';

/** An error as clients read it: a status for HTTP, its name in gRPC, and a code for JSON-RPC. */
interface Words {
  readonly status: number;
  readonly name: string;
  readonly code: number;
  /** The reason in the `ErrorInfo`, for the errors of the protocol itself. */
  readonly reason?: string;
}

const invalidArgument = 'INVALID_ARGUMENT';
const precondition = 'FAILED_PRECONDITION';

const taskNotFound: Words = { status: 404, name: 'NOT_FOUND', code: -32001, reason: 'TASK_NOT_FOUND' };
const unsupported: Words = { status: 400, name: precondition, code: -32004, reason: 'UNSUPPORTED_OPERATION' };
const contentType: Words = {
  status: 400,
  name: invalidArgument,
  code: -32005,
  reason: 'CONTENT_TYPE_NOT_SUPPORTED',
};
const notJson: Words = { status: 400, name: invalidArgument, code: -32700 };
const invalidParams: Words = { status: 400, name: invalidArgument, code: -32602, reason: 'INVALID_PARAMS' };

/** This server's errors that the protocol has words for, by their names in `docs/errors.md`. */
const known: Readonly<Record<string, Words>> = {
  run_unknown: taskNotFound,
  log_removed: taskNotFound,
  already_final: { status: 400, name: precondition, code: -32002, reason: 'TASK_NOT_CANCELABLE' },
  target_unknown: taskNotFound,
  webhooks_off: { status: 400, name: precondition, code: -32003, reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' },
  operation_unsupported: unsupported,
  not_awaiting: unsupported,
  question_mismatch: unsupported,
  await_type_mismatch: unsupported,
  session_busy: unsupported,
  conflict: unsupported,
  content_type_refused: contentType,
  media_type: contentType,
  content_encoding: contentType,
  version_unsupported: { status: 400, name: precondition, code: -32009, reason: 'VERSION_NOT_SUPPORTED' },
  body_not_json: notJson,
  body_too_deep: notJson,
  operation_unknown: { status: 404, name: 'NOT_FOUND', code: -32601 },
  validation_failed: invalidParams,
  cursor_invalid: invalidParams,
  idempotency_key_reused: invalidParams,
};

/** The names of gRPC for the statuses of all other errors. */
const names: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
};

function wordsOf({ status, reason }: Refusal): Words {
  const internal = { status, name: names[status] ?? 'INTERNAL', code: -32603 };
  return known[reason] ?? (status >= 500 ? internal : { status, name: names[status] ?? invalidArgument, code: -32600 });
}

const json = 'application/json; charset=utf-8';

/** What programs read: the reason in the protocol's words, or else this server's own. */
const detailsOf = ({ reason: own }: Refusal, { reason }: Words) => [
  {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: reason ?? own.toUpperCase(),
    domain: reason === undefined ? 'rivulet' : 'a2a-protocol.org',
    metadata: { reason: own },
  },
];

export function sendRestError(reply: FastifyReply, refusal: Refusal): void {
  const words = wordsOf(refusal);
  const { status: code, name: status } = words;
  const { message } = refusal.body;
  reply
    .code(code)
    .type(contentTypeFor(reply.request))
    .send(JSON.stringify({ error: { code, status, message, details: detailsOf(refusal, words) } }));
}

/** Statuses of HTTP that clients and proxies act on, before they read the body. */
const ofHttp = new Set([401, 403, 429]);

/** JSON-RPC answers its own errors with 200. `id` is the request's, as JSON. */
export function sendRpcError(reply: FastifyReply, refusal: Refusal, id: string): void {
  const words = wordsOf(refusal);
  const isHttp = ofHttp.has(refusal.status) || refusal.status >= 500;
  const error = JSON.stringify({ code: words.code, message: refusal.body.message, data: detailsOf(refusal, words) });
  reply
    .code(isHttp ? refusal.status : 200)
    .type(json)
    .send(`{"jsonrpc":"2.0","id":${id},"error":${error}}`);
}
