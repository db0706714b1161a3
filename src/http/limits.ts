import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { compile } from '../core/validate.ts';
import { interval, timer } from '../engine/limits.ts';

const count = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum: 2 ** 31 - 1, description });

/** What requests may take, and how streams are looked after. Times are in milliseconds. */
export const HttpLimits = Type.Object({
  bodyLimit: count(10 * 1024 * 1024, 'Bytes of a request’s body.'),
  bodyValues: count(20_000, 'JSON values of a body: list items, object members, lists and objects.'),
  maxStreams: count(15_000, 'Streams that are open at once; one more is refused with 503.'),
  heartbeat: interval(15_000, 'Time between the comments that keep an idle stream open.'),
  stalledAfter: timer(60_000, 'Time until a stream whose reader takes nothing of what waits is dropped; 0 for never.'),
  retry: timer(1_000, 'Time that a client whose stream broke waits before it reconnects.'),
});
export type HttpLimits = Readonly<Static<typeof HttpLimits>>;

/** What connections may take, where the server is Rivulet’s own. Times are in milliseconds. */
export const ConnectionLimits = Type.Object({
  maxConnections: count(20_000, 'Connections that are open at once; one more is closed.'),
  headersTimeout: interval(15_000, 'Time that a request’s headers may take.'),
  receiveTimeout: interval(60_000, 'Time that all of a request may take; what is answered does not count.'),
  keepAliveTimeout: interval(72_000, 'Time that a connection without a request is kept.'),
});
export type ConnectionLimits = Readonly<Static<typeof ConnectionLimits>>;

const checkHttp = compile(HttpLimits, 'options');
const checkConnections = compile(ConnectionLimits, 'options');

/** Takes the limits out of options, completed with the defaults. @throws RivuletError `validation_failed` that names the option */
export const httpLimits = (options: Partial<HttpLimits>): HttpLimits => checkHttp(completed(HttpLimits, options));

/** As above. */
export const connectionLimits = (options: Partial<ConnectionLimits>): ConnectionLimits =>
  checkConnections(completed(ConnectionLimits, options));

const completed = (schema: typeof HttpLimits | typeof ConnectionLimits, options: object): unknown =>
  Value.Default(schema, Value.Clean(schema, { ...options }));
