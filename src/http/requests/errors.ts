import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorName, fail, RivuletError } from '../../core/errors.ts';
import type { ErrorBody } from '../../schema/error.ts';

/** What the answer to a request that fails says: the status, the name and the body of its error. */
export interface Refusal {
  readonly status: number;
  readonly reason: ErrorName;
  readonly body: ErrorBody;
}

/** A text without the keys and tickets that a client has pasted into it. */
const withoutKeys = (text: string): string => text.replace(/\brv[ks]_[\w.-]+/g, '***');

/** The path of a request. The query may have values that belong neither in a response nor in a log. */
export const pathOf = ({ url }: Pick<FastifyRequest, 'url'>): string => withoutKeys(url.split('?', 1)[0] ?? '');

/**
 * The status and body for an error. Errors of Fastify, of its plugins and of an app that embeds this one keep their
 * status; client errors keep their message, too.
 */
export function refusalOf(error: unknown, request: FastifyRequest): Refusal {
  const known = error instanceof RivuletError ? error : knownError(statusOf(error), request);
  if (known !== undefined) return refusalWith(known, known.status);
  const status = statusOf(error);
  const message = error instanceof Error && error.message !== '' ? error.message : 'The request was refused.';
  const unknown = status >= 500 ? fail('internal_error', request.id) : fail('bad_request', message);
  return refusalWith(unknown, status);
}

function refusalWith(error: RivuletError, status: number): Refusal {
  const body = error.toJSON();
  return { status, reason: error.kind, body: { ...body, message: withoutKeys(body.message) } };
}

/** The status of an error, where it is a valid error status; otherwise 500. */
function statusOf(error: unknown): number {
  const status: unknown = error instanceof Error ? Reflect.get(error, 'statusCode') : undefined;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600 ? status : 500;
}

/** The error of Rivulet for a status of Fastify's; undefined where there is none. */
function knownError(status: number, request: FastifyRequest): RivuletError | undefined {
  if (status === 404) return fail('route_unknown', request.method, pathOf(request));
  if (status === 413) return fail('body_too_large');
  if (status === 415) return fail('media_type', request.headers['content-type'] ?? 'no content type');
  if (status === 429) return fail('rate_limited');
  return undefined;
}

/** Answers a request with an Error object. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { body } = refuse(error, request, reply);
  reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
}

/** Prepares the answer to a request that fails: logs the error, sets the status, and returns what its body has to say. */
export function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): Refusal {
  const refusal = refusalOf(error, request);
  const { status, reason, body } = refusal;
  if (status === 503 && error instanceof RivuletError) request.log.warn({ err: error.cause }, body.message);
  else if (status >= 500) request.log.error({ err: error }, body.message);
  if (status === 503 && !reply.hasHeader('Retry-After')) reply.header('Retry-After', '1');
  // The route may have allowed caches to keep its answer, and the framework refuses some requests before any hook.
  reply.header('cache-control', 'no-store');
  // Fastify would close the connection, and a client that still sends would lose the answer. Node drops the rest.
  if (reason === 'body_too_large') reply.removeHeader('connection');
  reply.refusal = reason;
  reply.code(status);
  return refusal;
}

type Answerer = (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;

/** Answers errors of requests below a prefix that match no route, instead of the server. */
export type AnswerBelow = (prefix: string, answer: Answerer) => void;

/**
 * Answers requests that match no route: 405 with `Allow` where the path is that of a route that was registered later,
 * otherwise 404, in the words of the prefix. Only such requests cost a search through all routes. There is one handler
 * for all prefixes: Fastify would add two routes for each of 35 methods to every handler, a tenth of the start.
 */
export function refuseUnknown(app: FastifyInstance): AnswerBelow {
  const routes = new Map<string, Set<string>>();
  // Made for the first request that matches no route.
  let patterns: { readonly path: RegExp; readonly methods: Set<string> }[] | undefined;
  const answers: { readonly prefix: string; readonly path: RegExp; readonly answer: Answerer }[] = [];
  const answererBelow = (path: string): Answerer | undefined => answers.find((one) => one.path.test(path))?.answer;
  app.addHook('onRoute', ({ url, method }) => {
    // The route of preflights has every path, and makes none of them known.
    if (method === 'OPTIONS') return;
    const methods = routes.get(url) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    routes.set(url, methods);
  });
  app.setErrorHandler((error, request, reply) => {
    const answer = request.is404 ? answererBelow(pathOf(request)) : undefined;
    (answer ?? handleError)(error, request, reply);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request);
    const answer = answererBelow(path) ?? handleError;
    patterns ??= [...routes].map(([url, names]) => ({ path: patternOf(url), methods: names }));
    const methods = patterns.filter((route) => route.path.test(path)).flatMap((route) => [...route.methods]);
    if (methods.length === 0 || methods.includes(request.method)) {
      return answer(fail('route_unknown', request.method, path), request, reply);
    }
    const allowed = [...new Set(methods)].join(', ');
    reply.header('Allow', allowed);
    answer(fail('method_unknown', request.method, path, allowed), request, reply);
  });
  return (prefix, answer) => {
    answers.push({ prefix, path: patternOf(prefix, '(/|$)'), answer });
    // A prefix may be below another one; the longest decides.
    answers.sort((one, other) => other.prefix.length - one.prefix.length);
  };
}

/**
 * A route's URL, such as `/runs/:run_id`, as a pattern; a slash at its end is ignored. A parameter may have a pattern of its
 * own, as in `:verb(^(?:send|stream)$)`.
 */
function patternOf(url: string, end = '/?$'): RegExp {
  const parts = url.replace(/\/$/, '').split('/').map(segmentOf);
  return new RegExp(`^${parts.join('/')}${end}`);
}

const segmentOf = (segment: string): string =>
  /^:\w+\(\^(.*)\$\)$/.exec(segment)?.[1] ??
  segment
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:\w+/g, '[^/]+')
    .replace(/\*/g, '.*');
