import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from '@sinclair/typebox';
import type { FastifyRequest } from 'fastify';
import { fail } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { compile, open } from '../../core/validate.ts';
import { refuse } from '../../http/requests/errors.ts';
import { sendJson } from '../../http/requests/respond.ts';
import { RunHeaders } from '../../schema/api.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { sendRpcError } from './errors.ts';
import { negotiate } from './negotiation.ts';
import { isOperation, operations, type Service } from './operations.ts';

const RpcRequest = open({
  jsonrpc: Type.Literal('2.0'),
  id: Type.Union([Type.String({ maxLength: 255 }), Type.Number(), Type.Null()]),
  method: Type.String(),
  params: Type.Optional(Type.Unknown()),
});
const rpcRequest = compile(RpcRequest);

export interface BindingOptions extends Omit<ProtocolOptions, 'prefix'> {
  readonly service: Service;
}

/** The binding to JSON-RPC: one address for an agent, and one for all of them. */
export const jsonRpcRoutes: FastifyPluginAsyncTypebox<BindingOptions> = async (app, { access, service }) => {
  app.setErrorHandler((error, request, reply) =>
    sendRpcError(reply, refuse(error, request, reply), idIn(request.body)),
  );

  for (const path of ['/', '/:agent']) {
    app.post(
      path,
      {
        // The scope of each operation is checked with its name.
        config: { scope: 'runs:read', work: workOf },
        schema: { hide: true, params: Type.Object({ agent: Type.Optional(Type.String()) }), headers: RunHeaders },
      },
      async (request, reply) => {
        const { method, params = {} } = bodyOf(request);
        if (!isOperation(method)) throw fail('operation_unknown', method);
        const id = idIn(request.body);
        const result = await operations[method].run(service, {
          own: access(request),
          agent: request.params.agent,
          params,
          headers: request.headers,
          reply,
          cursors: negotiate(request, reply),
          id,
        });
        if (result === undefined) return reply;
        return sendJson(reply, `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`);
      },
    );
  }
};

/** Only messages make runs work. */
const workOf = (body: unknown) =>
  isObject(body) && typeof body.method === 'string' && /^Send(Streaming)?Message$/.test(body.method)
    ? 'creates'
    : undefined;

/** @throws RivuletError `body_not_json`, `bad_request` */
function bodyOf({ body }: Pick<FastifyRequest, 'body'>) {
  if (body === undefined) throw fail('body_not_json', 'it is empty');
  try {
    return rpcRequest(body);
  } catch (error) {
    throw fail('bad_request', error instanceof Error ? error.message : 'The body is no request of JSON-RPC.');
  }
}

/** The id of a request, as JSON; null where it has none that can be read. */
function idIn(body: unknown): string {
  const id = isObject(body) ? body.id : undefined;
  return typeof id === 'string' || typeof id === 'number' ? JSON.stringify(id) : 'null';
}
