import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail, RivuletError } from '../core/errors.ts';
import type { ErrorBody } from '../schema/error.ts';

interface Answer {
  readonly status: number;
  readonly body: ErrorBody;
}

/** The path of a request; its query may hold what belongs neither into an answer nor into a log. */
export const pathOf = ({ url }: Pick<FastifyRequest, 'url'>): string => url.split('?', 1)[0] ?? '';

/**
 * What is answered to an error. Errors of Fastify, of its plugins and of an app around this one have a status and keep
 * it; the message of those that are the client's fault is told as well.
 */
export function answerTo(error: unknown, request: FastifyRequest): Answer {
  const known = error instanceof RivuletError ? error : rowFor(statusOf(error), request);
  if (known !== undefined) return { status: known.status, body: known.toJSON() };
  const status = statusOf(error);
  if (status >= 500) return { status, body: fail('internal_error', request.id).toJSON() };
  const message = error instanceof Error && error.message !== '' ? error.message : 'The request was refused.';
  return { status, body: fail('bad_request', message).toJSON() };
}

/** The status that an error carries, where it is one of an error. */
function statusOf(error: unknown): number {
  const status: unknown = error instanceof Error ? Reflect.get(error, 'statusCode') : undefined;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600 ? status : 500;
}

/** The row of the table for a status of Fastify's, where it has one. */
function rowFor(status: number, request: FastifyRequest): RivuletError | undefined {
  if (status === 404) return fail('route_unknown', request.method, pathOf(request));
  if (status === 413) return fail('body_too_large');
  if (status === 415) return fail('media_type', request.headers['content-type'] ?? 'no content type');
  if (status === 429) return fail('rate_limited');
  return undefined;
}

/** Answers every error of a request as an Error object. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, body } = answerTo(error, request);
  if (status === 503 && error instanceof RivuletError) request.log.warn({ err: error.cause }, body.message);
  else if (status >= 500) request.log.error({ err: error }, body.message);
  if (status === 503 && !reply.hasHeader('Retry-After')) reply.header('Retry-After', '1');
  reply.code(status).type('application/json; charset=utf-8').send(JSON.stringify(body));
}
