import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorName } from '../core/errors.ts';
import { pathOf } from './errors.ts';
import { onceClosed } from './once-closed.ts';
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
  'stopping',
]);

/** Routes that orchestrators and Prometheus call every few seconds: their lines have the level `debug`. */
const frequent = new Set(['/health', '/ready', '/ping', '/metrics']);

/**
 * One line for each request, and its metrics, when the response is complete or the client has left. Fastify's own lines
 * and its `onResponse` hook never come for a stream whose client leaves.
 */
export function recordRequests(app: FastifyInstance, { traffic, lines }: RequestLogOptions): void {
  app.decorateReply('streamMode', undefined);
  app.decorateReply('refusal', undefined);
  if (lines === undefined && traffic === unobserved) return;
  app.addHook('onRequest', (request, reply, next) => {
    const began = performance.now();
    if (lines !== undefined) reply.header('X-Request-Id', request.id);
    onceClosed(reply, () => {
      const seconds = (performance.now() - began) / 1000;
      observe(traffic, request, reply, seconds);
      if (lines !== undefined) log(lines, request, reply, seconds);
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

function log(lines: FastifyBaseLogger, request: FastifyRequest, reply: FastifyReply, seconds: number): void {
  const { method, routeOptions, ip, principal } = request;
  const { raw, refusal, streamMode } = reply;
  const status = statusOf(reply);
  const line = {
    request_id: request.id,
    method,
    path: pathOf(request),
    ...(status !== undefined && { status }),
    seconds: rounded(seconds),
    ...idsOf(request, reply),
    ...(principal !== undefined && principal.kind !== 'anonymous' && { principal: principal.id }),
    ip,
    ...(streamMode !== undefined && { stream: streamMode }),
    ...(refusal !== undefined && { reason: refusal }),
    // The connection closed first: the client has left, or the server has dropped it.
    ...(!raw.writableEnded && { complete: false }),
  };
  if (frequent.has(routeOptions.url ?? '')) lines.debug(line, 'request');
  else lines.info(line, 'request');
}

function idsOf({ params }: FastifyRequest, reply: FastifyReply): { run_id?: string; session_id?: string } {
  const { run_id = reply.getHeader('Run-ID'), session_id } = { ...idParams(params) };
  return {
    ...(isId(run_id) && { run_id }),
    ...(isId(session_id) && { session_id }),
  };
}

/** In place of an id, a client may have sent a key. */
const isId = (value: unknown): value is string => typeof value === 'string' && /^[\da-f-]{36}$/i.test(value);

const idParams = (params: unknown): { run_id?: unknown; session_id?: unknown } | undefined =>
  typeof params === 'object' && params !== null ? params : undefined;

/** Seconds to a tenth of a millisecond, for log lines. */
export const rounded = (seconds: number): number => Math.round(seconds * 10_000) / 10_000;
