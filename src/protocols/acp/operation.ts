import type { IncomingHttpHeaders } from 'node:http';
import type { Static, TSchema } from '@sinclair/typebox';
import type { FastifyInstance, FastifyReply, RouteOptions } from 'fastify';
import type { Access } from '../../engine/access.ts';
import type { AccessOf } from '../../http/requests/caller.ts';
import { sendJson } from '../../http/requests/respond.ts';
import { ErrorBody } from '../../schema/error.ts';

interface Schema {
  readonly summary: string;
  readonly tags: readonly string[];
  readonly params?: TSchema;
  readonly querystring?: TSchema;
  readonly headers?: TSchema;
  readonly body?: TSchema;
  /** By status; the lowest one is that of the answer. */
  readonly response: Readonly<Record<number, unknown>>;
}

/** The parts of a request, as the schemas of its operation have checked them. */
export interface Input {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

type Checked<S> = S extends TSchema ? Static<S> : unknown;

interface InputOf<S extends Schema> extends Input {
  readonly params: Checked<S['params']>;
  readonly query: Checked<S['querystring']>;
  readonly headers: Checked<S['headers']> & IncomingHttpHeaders;
  readonly body: Checked<S['body']>;
}

/** An operation of the API, for callers over HTTP and in this process: its route, and what it does for a caller. */
export interface Operation<Answer = unknown, Taken extends Input = Input>
  extends Pick<RouteOptions, 'config' | 'exposeHeadRoute' | 'preValidation'> {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly schema: Schema;
  /** A text is JSON. As a method, it is also one of an operation that takes any input: the schemas check the difference. */
  call(access: Access, input: Taken): Promise<Answer>;
  /** The JSON of an answer that has more than JSON. */
  json?(answer: Answer): string;
}

/** An operation whose schemas tell the type of its input. */
export const operation = <S extends Schema, Answer>(
  row: Omit<Operation<Answer, InputOf<S>>, 'schema'> & { readonly schema: S },
): Operation<Answer, InputOf<S>> => row;

/** The responses of an operation that is refused with some statuses. */
export const refusals = (...statuses: number[]) =>
  Object.fromEntries(statuses.map((status): [number, typeof ErrorBody] => [status, ErrorBody]));

type Handler<Taken> = (input: Taken, reply: FastifyReply, own: Access) => Promise<unknown>;

/** The answers that need more than what the operation returns. The whole request is that of the reply. */
type Handlers<Operations> = {
  readonly [Name in keyof Operations]?: Operations[Name] extends Operation<infer _, infer Taken>
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
  for (const [operationId, { call, json: _, schema, ...route }] of Object.entries(operations)) {
    const status = Number(Object.keys(schema.response)[0]);
    const answer: Handler<Input> = async (input, reply, own) => {
      const value = await call(own, input);
      reply.code(status);
      return typeof value === 'string' ? sendJson(reply, value) : (value ?? reply.send());
    };
    // A cast: the schemas of the operation have checked the request.
    const handle = (handlers as Partial<Record<string, Handler<Input>>>)[operationId] ?? answer;
    app.route({
      ...route,
      schema: { operationId, ...schema },
      handler: (request, reply) => handle(request, reply, access(request)),
    });
  }
}
