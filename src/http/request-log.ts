import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorName } from '../core/errors.ts';
import { cut } from '../core/json.ts';
import type { SpanIds, Traces } from '../core/ports/traces.ts';
import { isUuid } from '../schema/formats.ts';
import { pathOf } from './requests/errors.ts';
import { onceClosed } from './requests/once-closed.ts';
import { type StreamMode, type TrafficObserver, unobserved } from './traffic.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** Set when the reply becomes a stream. */
    streamMode: StreamMode | undefined;
    /** The error with which the request was answered. */
    refusal: ErrorName | undefined;
  }
}

export interface RequestLogOptions {
  readonly traffic: TrafficObserver;
  /** Undefined for no lines: an app that hosts Rivulet as a plugin logs its requests itself. */
  readonly lines: FastifyBaseLogger | undefined;
  /** Undefined where nothing is traced. */
  readonly traces?: Pick<Traces, 'active'> | undefined;
}

/** Errors that say that the server has no room, or does not serve the sender. The others are about the request. */
const refusals: ReadonlySet<ErrorName> = new Set<ErrorName>([
  'host_refused',
  'origin_refused',
  'body_too_large',
  'media_type',
  'rate_limited',
  'queue_full',
  'too_busy',
  'too_many_streams',
  'store_unavailable',
  'key_in_use',
  'stopping',
]);

/** Characters of a path in a line. */
const maxPath = 1_000;

/** Routes that orchestrators and Prometheus call every few seconds: their lines have the level `debug`. */
const frequent = new Set(['/health', '/ready', '/ping', '/metrics']);

/**
 * One line for each request, and its metrics, when the response is complete or the client has left. Fastify's own lines
 * and its `onResponse` hook never come for a stream whose client leaves.
 */
export function recordRequests(app: FastifyInstance, { traffic, lines, traces }: RequestLogOptions): void {
  app.decorateReply('streamMode', undefined);
  app.decorateReply('refusal', undefined);
  if (lines === undefined && traffic === unobserved) return;
  app.addHook('onRequest', (request, reply, next) => {
    const began = performance.now();
    // Asked here: the connection closes outside of the request's span.
    const span = lines && traces?.active();
    if (lines !== undefined) reply.header('x-request-id', request.id);
    onceClosed(reply, () => {
      const seconds = (performance.now() - began) / 1000;
      observe(traffic, request, reply, seconds);
      if (lines !== undefined) log(lines, request, reply, seconds, span);
    });
    next();
  });
}

/** Undefined where the connection closed before there was a response. */
const statusOf = ({ raw }: FastifyReply): number | undefined => (raw.headersSent ? raw.statusCode : undefined);

function observe(traffic: TrafficObserver, request: FastifyRequest, reply: FastifyReply, seconds: number): void {
  const { refusal, streamMode: stream } = reply;
  const { method, routeOptions } = request;
  traffic.onRequest({ method, route: routeOptions.url, status: statusOf(reply), seconds, stream });
  if (refusal !== undefined && refusals.has(refusal)) traffic.onRefused(refusal);
}

function log(
  lines: FastifyBaseLogger,
  request: FastifyRequest,
  reply: FastifyReply,
  seconds: number,
  span: SpanIds | undefined,
): void {
  const { method, routeOptions, ip, principal } = request;
  const { raw, refusal, streamMode } = reply;
  const { run_id = reply.getHeader('run-id'), session_id } = { ...idParams(request.params) };
  // Always the same fields, undefined where there is none, which pino leaves out: an object of one shape is cheaper.
  const line = {
    request_id: request.id,
    method,
    path: cut(pathOf(request), maxPath),
    status: statusOf(reply),
    seconds: rounded(seconds),
    run_id: isId(run_id) ? run_id : undefined,
    session_id: isId(session_id) ? session_id : undefined,
    principal: principal?.kind === 'anonymous' ? undefined : principal?.id,
    ip,
    trace_id: span?.trace_id,
    span_id: span?.span_id,
    stream: streamMode,
    reason: refusal,
    // The connection closed first: the client has left, or the server has dropped it.
    complete: raw.writableEnded ? undefined : false,
  };
  if (frequent.has(routeOptions.url ?? '')) lines.debug(line, 'request');
  else lines.info(line, 'request');
}

/** In place of an id, a client may have sent a key. */
const isId = (value: unknown): value is string => typeof value === 'string' && isUuid(value);

const idParams = (params: unknown): { run_id?: unknown; session_id?: unknown } | undefined =>
  typeof params === 'object' && params !== null ? params : undefined;

/** Seconds to a tenth of a millisecond, for log lines. */
export function rounded(seconds: number): number;
export function rounded(seconds: number | undefined): number | undefined;
export function rounded(seconds: number | undefined): number | undefined {
  return seconds && Math.round(seconds * 10_000) / 10_000;
}
