import type { FastifyReply } from 'fastify';
import type { Refusal } from '../../http/requests/errors.ts';
import type { ErrorBody } from '../../schema/error.ts';
import { failureCode } from '../run-errors.ts';

/** An error as OpenAI's clients read it. */
export interface OpenAiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found',
  410: 'not_found',
  429: 'rate_limit',
};

/** The codes of OpenAI for errors that clients look for; any other error has the name of `docs/errors.md`. */
const codes: Readonly<Record<string, string>> = {
  agent_unknown: 'model_not_found',
  run_unknown: 'response_not_found',
  log_removed: 'response_not_found',
  quota_exceeded: 'rate_limit_exceeded',
};

/** A request that is refused. What OpenAI answers with 400 is a 422 elsewhere on this server. */
function wordsOf(
  { status: own, reason, body }: Refusal,
  models: string,
): { status: number; body: { error: OpenAiError } } {
  const message =
    reason === 'agent_unknown' ? body.message.replace(/GET \/agents(?=[^;]*$)/, `GET ${models}`) : body.message;
  const status = own === 422 ? 400 : own;
  const type = types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  const param = reason === 'agent_unknown' ? 'model' : paramOf(reason, body.message);
  return { status, body: { error: { message, type, param, code: codes[reason] ?? reason } } };
}

/** The field that a validation names before its problem. */
const paramOf = (reason: string, message: string): string | null =>
  reason === 'validation_failed' ? (/^(\S+): /.exec(message)?.[1] ?? null) : null;

/**
 * Answers a request with an error. Clients repeat requests that were refused with 409, which does not help. `models` is the
 * address of the list of models.
 */
export function sendError(reply: FastifyReply, refusal: Refusal, models: string): void {
  const { status, body } = wordsOf(refusal, models);
  if (status === 409) reply.header('x-should-retry', 'false');
  reply.code(status).type('application/json; charset=utf-8').send(JSON.stringify(body));
}

const typeOf = ({ code }: ErrorBody): string => (code === 'server_error' ? code : 'invalid_request_error');

/** The error of a failed response. OpenAI's has no type; `@ai-sdk/openai` reads no answer without one. */
export const responseError = (error: ErrorBody) => ({
  code: failureCode(error),
  message: error.message,
  type: typeOf(error),
});

/** An error in a stream. Clients look for `error` in the data of any event, and throw. */
export const errorFrame = (error: ErrorBody): string =>
  `event: error\ndata: ${JSON.stringify({ type: 'error', error: errorInStream(error) })}\n\n`;

export const errorInStream = (error: ErrorBody): OpenAiError => ({
  message: error.message,
  type: typeOf(error),
  param: null,
  code: typeof error.data?.reason === 'string' ? error.data.reason : failureCode(error),
});
