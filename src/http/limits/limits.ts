import { type Static, type TObject, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { compile } from '../../core/validate.ts';
import { positiveTimer, timer } from '../../engine/limits.ts';

const count = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum: 2 ** 31 - 1, description });

const orNone = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 0, maximum: 2 ** 31 - 1, description: `${description} 0 for no limit.` });

/** The fewest characters of a secret that signs stream tickets or webhooks. */
export const minSecretLength = 32;

/**
 * Limits of requests and streams. Times are in milliseconds. A caller is a principal, or all principals of a tenant;
 * without authentication, callers have no limits of their own.
 */
export const HttpLimits = Type.Object({
  bodyLimit: count(10 * 1024 * 1024, 'Bytes of a request’s body.'),
  bodyValues: count(20_000, 'JSON values of a body: list items, object members, lists and objects.'),
  maxStreams: count(15_000, 'Streams that are open at once; further ones are refused with 503.'),
  streamsPerOwner: orNone(200, 'Streams that one caller may have open; further ones are refused with 429.'),
  runsPerOwner: orNone(100, 'Runs of one caller that may be at work; further ones are refused with 429.'),
  readLimit: count(
    64 * 1024 * 1024,
    'Characters of stored runs that one request may hold; a list ends early, and a larger read is refused with 413.',
  ),
  readsPerOwner: orNone(
    256 * 1024 * 1024,
    'Characters of stored runs that the pending answers of one caller may hold; further reads are refused with 429.',
  ),
  requestsPerMinute: orNone(600, 'Requests that one caller may make in a minute; further ones are refused with 429.'),
  runsPerMinute: orNone(60, 'Runs that one caller may create in a minute; further ones are refused with 429.'),
  tokensPerDay: orNone(0, 'Tokens that the runs of one caller may use in a day; then new runs are refused with 429.'),
  overloadDelay: timer(
    0,
    'Time by which the event loop may be late (99th percentile of five seconds) before new runs are refused with 503; 0 for never. `rivulet serve` has 500.',
  ),
  overloadHeap: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 100,
    description:
      'Percent of the heap that may be in use for five seconds before new runs and large reads are refused with 503; then pending answers may hold a fourth of the heap. 0 for never. `rivulet serve` has 90.',
  }),
  heartbeat: positiveTimer(15_000, 'Time between the comments that keep an idle stream open.'),
  longPollTimeout: positiveTimer(15_000, 'Time that a long poll waits for further events of a run.'),
  durableStreamTimeout: positiveTimer(
    60_000,
    'Time after which a stream of Durable Streams over Server-Sent Events ends, and its client continues with another one.',
  ),
  stalledAfter: timer(
    60_000,
    'Time after which an answer is dropped whose client reads nothing of the pending data; 0 for never.',
  ),
  retry: timer(1_000, 'Time that a client waits before it reconnects a broken stream.'),
});
export type HttpLimits = Readonly<Static<typeof HttpLimits>>;

/** Limits of connections, where the server is Rivulet’s own. Times are in milliseconds. */
export const ConnectionLimits = Type.Object({
  maxConnections: count(20_000, 'Connections that are open at once; further ones are closed.'),
  connectionsPerAddress: orNone(
    0,
    'Connections that one address may have open, or a network of IPv6, other than those of trustProxy; further ones are closed.',
  ),
  headersTimeout: positiveTimer(15_000, 'Time in which a request’s headers must arrive.'),
  receiveTimeout: positiveTimer(60_000, 'Time in which a whole request must arrive; the response does not count.'),
  keepAliveTimeout: positiveTimer(72_000, 'Time after which a connection without a request is closed.'),
});
export type ConnectionLimits = Readonly<Static<typeof ConnectionLimits>>;

/** Finds limits among options, with defaults. The result throws RivuletError `validation_failed` that names the option. */
function limitsIn<S extends TObject>(schema: S): (options: Partial<Static<S>>) => Static<S> {
  const check = compile(schema, 'options');
  return (options) => check(Value.Default(schema, Value.Clean(schema, { ...options })));
}
export const httpLimits = limitsIn(HttpLimits);
export const connectionLimits = limitsIn(ConnectionLimits);
