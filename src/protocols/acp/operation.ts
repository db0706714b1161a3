import type { IncomingHttpHeaders } from 'node:http';
import type { Static, TSchema } from '@sinclair/typebox';
import type { FastifyInstance, FastifyReply, RouteOptions } from 'fastify';
import type { Access } from '../../engine/access.ts';
import type { AccessOf } from '../../http/requests/caller.ts';
import { sendJson } from '../../http/requests/respond.ts';
import { ErrorBody } from '../../schema/error.ts';

type Method = 'GET' | 'POST' | 'DELETE';

/** The parts of a request, which the schemas of its operation have checked. */
export interface Input<
  Params extends TSchema = TSchema,
  Query extends TSchema = TSchema,
  Headers extends TSchema = TSchema,
  Body extends TSchema = TSchema,
> {
  readonly params: Static<Params>;
  readonly query: Static<Query>;
  readonly headers: Static<Headers> & IncomingHttpHeaders;
  readonly body: Static<Body>;
}

/** An operation of the API, for callers over HTTP and in this process: its route, and what it does for a caller. */
export interface Operation<
  Answer = unknown,
  Params extends TSchema = TSchema,
  Query extends TSchema = TSchema,
  Headers extends TSchema = TSchema,
  Body extends TSchema = TSchema,
> extends Pick<RouteOptions, 'config' | 'exposeHeadRoute' | 'preValidation'> {
  readonly route: `${Method} /${string}`;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly params?: Params;
  readonly query?: Query;
  readonly headers?: Headers;
  readonly body?: Body;
  /** Schemas by status. The answer has the lowest status. */
  readonly response: Readonly<Record<number, unknown>>;
  /** A text is JSON. */
  call(access: Access, input: Input<Params, Query, Headers, Body>): Promise<Answer>;
  /** The JSON of an answer that has more than JSON. */
  json?(answer: Answer): string;
}

/** An operation, whose schemas tell the types of its input. */
export const operation = <
  Answer,
  Params extends TSchema = TSchema,
  Query extends TSchema = TSchema,
  Headers extends TSchema = TSchema,
  Body extends TSchema = TSchema,
>(
  row: Operation<Answer, Params, Query, Headers, Body>,
): Operation<Answer, Params, Query, Headers, Body> => row;

/** The responses of an operation that is refused with some statuses. */
export const refusals = (...statuses: number[]) =>
  Object.fromEntries(statuses.map((status): [number, typeof ErrorBody] => [status, ErrorBody]));

type Handler<Taken> = (input: Taken, reply: FastifyReply, own: Access) => Promise<unknown>;

/** The answers that need more than what the operation returns. The reply has the whole request. */
type Handlers<Operations> = {
  readonly [Name in keyof Operations]?: Operations[Name] extends { call(access: Access, input: infer Taken): unknown }
    ? Handler<Taken>
    : never;
};

/** Serves operations by their ids. */
export function serve<Operations extends Readonly<Record<string, Operation>>>(
  app: FastifyInstance,
  access: AccessOf,
  operations: Operations,
  handlers: Handlers<Operations> = {},
): void {
  for (const [operationId, operation] of Object.entries(operations)) {
    const { route, call, json: _, config, exposeHeadRoute, preValidation, query, ...schema } = operation;
    const [method = '', url = ''] = route.split(' ');
    const status = Number(Object.keys(schema.response)[0]);
    const answer: Handler<Input> = async (input, reply, own) => {
      const value = await call(own, input);
      reply.code(status);
      return typeof value === 'string' ? sendJson(reply, value) : (value ?? reply.send());
    };
    // A cast: the schemas of the operation have checked the request.
    const handle = (handlers as Partial<Record<string, Handler<Input>>>)[operationId] ?? answer;
    app.route({
      method,
      url,
      config,
      exposeHeadRoute,
      preValidation,
      schema: { operationId, ...schema, ...(query && { querystring: query }) },
      handler: (request, reply) => handle(request, reply, access(request)),
    });
  }
}
