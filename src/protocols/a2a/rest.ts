import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { type Static, type TObject, Type } from '@sinclair/typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail } from '../../core/errors.ts';
import type { Scope } from '../../core/principal.ts';
import { open } from '../../core/validate.ts';
import { addVary } from '../../http/pages/caching.ts';
import { pathOf } from '../../http/requests/errors.ts';
import { RunHeaders } from '../../schema/api.ts';
import type { BindingOptions } from './json-rpc.ts';
import { contentTypeFor, negotiate } from './negotiation.ts';
import { type OperationName, operations } from './operations.ts';
import { ConfigPage } from './push-configs.ts';
import { ListTasksRequest, TaskRequest } from './request.ts';

const Params = Type.Object({
  agent: Type.String(),
  tenant: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  task: Type.Optional(Type.String()),
  config: Type.Optional(Type.String()),
});
type Params = Static<typeof Params>;
const TaskQuery = open({ historyLength: TaskRequest.properties.historyLength });

const configs = '/tasks/:task/pushNotificationConfigs';

/** Operations whose parameters are the query, and those that the path names. */
const plainRoutes: readonly [method: 'GET' | 'POST' | 'DELETE', path: string, name: OperationName, query?: TObject][] =
  [
    ['GET', '/tasks', 'ListTasks', ListTasksRequest],
    ['GET', '/extendedAgentCard', 'GetExtendedAgentCard'],
    ['POST', configs, 'CreateTaskPushNotificationConfig'],
    ['GET', configs, 'ListTaskPushNotificationConfigs', ConfigPage],
    ['GET', `${configs}/:config`, 'GetTaskPushNotificationConfig'],
    ['DELETE', `${configs}/:config`, 'DeleteTaskPushNotificationConfig'],
  ];

/**
 * The binding to HTTP and JSON. A verb stands after a colon, which clients may encode, so routes have the whole segment
 * as a parameter. That of a message has a pattern: other addresses match no route.
 */
export const restRoutes: FastifyPluginAsyncTypebox<BindingOptions> = async (app, { access, service }) => {
  const answer = async (
    name: OperationName,
    request: FastifyRequest & { params: Params; headers: RunHeaders },
    reply: FastifyReply,
    params: unknown,
  ): Promise<FastifyReply> => {
    const { agent } = request.params;
    const call = { own: access(request), agent, params, headers: request.headers, reply };
    const result = await operations[name].run(service, { ...call, cursors: negotiate(request, reply) });
    if (result === undefined) return reply;
    addVary(reply, 'Accept');
    return reply.type(contentTypeFor(request)).send(JSON.stringify(result));
  };
  const route = (scope: Scope) => ({
    exposeHeadRoute: false,
    config: { scope },
    schema: { hide: true, params: Params, headers: RunHeaders },
  });

  for (const base of ['/:agent', '/:agent/:tenant']) {
    for (const [method, path, name, querystring] of plainRoutes) {
      const { schema, ...rest } = route(operations[name].scope);
      app.route({
        ...rest,
        method,
        url: `${base}${path}`,
        schema: { ...schema, ...(querystring && { querystring }) },
        handler: (request, reply) => answer(name, request, reply, configParams(request)),
      });
    }

    app.post(
      `${base}/:message(^message(?::|%3[Aa])(?:send|stream)$)`,
      { ...route('runs:write'), config: { scope: 'runs:write', work: 'creates' } },
      async (request, reply) => {
        const { message = '', tenant } = request.params;
        const name = message.endsWith('stream') ? 'SendStreamingMessage' : 'SendMessage';
        const body = request.body;
        const params = tenant === undefined || typeof body !== 'object' ? body : { tenant, ...body };
        return answer(name, request, reply, params);
      },
    );

    app.get(
      `${base}/tasks/:task`,
      { ...route('runs:read'), schema: { ...route('runs:read').schema, querystring: TaskQuery } },
      async (request, reply) => {
        const { id, verb } = taskIn(request.params);
        if (verb !== undefined && verb !== 'subscribe') throw unknown(request);
        const { historyLength } = request.query;
        const params = { id, historyLength };
        return answer(verb === undefined ? 'GetTask' : 'SubscribeToTask', request, reply, params);
      },
    );

    // A scope that both verbs have; that of cancelling is checked with the operation.
    app.post(`${base}/tasks/:task`, route('runs:read'), async (request, reply) => {
      const { id, verb } = taskIn(request.params);
      if (verb !== 'cancel' && verb !== 'subscribe') throw unknown(request);
      return answer(verb === 'cancel' ? 'CancelTask' : 'SubscribeToTask', request, reply, { id });
    });
  }
};

/** The path names the task and the config; a new config is the body. */
function configParams({
  query,
  body,
  params: { task: taskId, config: id },
}: FastifyRequest<{ Params: Params }>): object {
  // The version is no parameter of an operation.
  const { 'A2A-Version': _, ...asked } = Object(query);
  return {
    ...asked,
    ...Object(body),
    ...(taskId !== undefined && { taskId }),
    ...(id !== undefined && { id }),
  };
}

const unknown = (request: FastifyRequest) => fail('route_unknown', request.method, pathOf(request));

/** The id of a task and its verb, as in `{id}:cancel`. */
function taskIn({ task = '' }: Params): { id: string; verb: string | undefined } {
  const [id = '', verb] = task.split(/:(?=[^:]*$)/, 2);
  return { id, verb };
}
