import type { FastifyRequest, FastifyServerOptions } from 'fastify';
import { pathOf } from './requests/errors.ts';

type LoggerOptions = Exclude<FastifyServerOptions['logger'], boolean | undefined>;

const redacted = (): string => '[redacted]';

/**
 * Fields that may hold secrets, for apps that log objects of their own. They are serializers, which pino calls only for a
 * line with such a field; its `redact` looks at each line.
 */
const secrets = ['headers', 'authorization', 'cookie', 'x-api-key', 'secret', 'token', 'password'];

/**
 * Options of a logger whose lines hold no secrets: of a request the path without its query, of an error no fields but its
 * kind, text and stack, because an HTTP client's error may have the request with its headers.
 */
export const safeLogger = (options: LoggerOptions): LoggerOptions => ({
  ...options,
  serializers: {
    ...Object.fromEntries(secrets.map((name) => [name, redacted])),
    req: requestFields,
    err: (error: unknown) => ({ ...errorFields(error) }),
    ...options.serializers,
  },
});

const requestFields = (request: FastifyRequest) => ({
  method: request.method,
  url: pathOf(request),
  host: request.host,
  remoteAddress: request.ip,
  remotePort: request.socket.remotePort,
});

type ErrorFields = {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
  readonly code?: string;
  readonly cause?: ErrorFields;
};

/** Errors in a chain of causes; more of them are left out. */
const maxCauses = 5;

/** Also of what looks like an error: the line of an ended run has one without its class. */
function errorFields(error: unknown, depth = 0): ErrorFields {
  const field = (name: string): unknown =>
    typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined;
  const text = (name: string): string | undefined => {
    const value = field(name);
    return typeof value === 'string' ? value : undefined;
  };
  const [code, cause] = [text('code'), field('cause')];
  return {
    type: text('type') ?? text('name') ?? typeof error,
    message: text('message') ?? '',
    stack: text('stack') ?? '',
    code,
    ...(cause !== undefined && depth < maxCauses && { cause: errorFields(cause, depth + 1) }),
  };
}
