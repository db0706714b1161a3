import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { ErrorBody } from '../../schema/error.ts';
import { formats } from '../../schema/formats.ts';
import type { ServerUrl } from '../server-url.ts';
import { feedExample, requestExamples, schemaExamples, streamExample } from './examples.ts';
import { descriptions, tags } from './texts.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface OpenApiOptions {
  /** Version of Rivulet. */
  readonly version: string;
  readonly url: ServerUrl;
  /** Whether callers are authenticated. */
  readonly secured: boolean;
  /** Names of the agents of this server, for the example requests. */
  readonly agents: readonly string[];
}

/** Serves OpenAPI 3.1 at `/openapi.json`, from the schemas of the routes that are registered later. */
export async function serveOpenApi(
  app: FastifyInstance,
  { version, url, secured, agents }: OpenApiOptions,
): Promise<void> {
  // Imported only where it is served: the plugin takes long to load.
  const { default: swagger } = await import('@fastify/swagger');
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Rivulet',
        description:
          'Hosts agents and streams their runs. The calls are those of the Agent Communication Protocol (ACP) 0.2, with ' +
          'streams that can be resumed.',
        version,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      // Only for the plugin, which removes the prefix from the paths.
      servers: [{ url: app.prefix || '/' }],
      tags,
      ...(secured && { components: { securitySchemes } }),
    },
    // The plugin would replace each `$id` with a name like def-0.
    transform: ({ schema, url, route }) => ({
      schema: { ...named(withError(schema)), ...(secured && securityOf(route)) },
      url,
    }),
    transformObject: (document) =>
      'openapiObject' in document ? complete(hoist(document.openapiObject), agents) : document.swaggerObject,
  });
  app.get('/openapi.json', { config: { open: true }, schema: { hide: true } }, (request) => ({
    ...app.swagger(),
    // Absolute: a generated client appends its paths, and curl has no other address.
    servers: [{ url: url(request), description: 'this server' }],
  }));
}

const securitySchemes = {
  token: {
    type: 'http',
    scheme: 'bearer',
    description: 'an API key or a JWT; the calls list the scopes that they need',
  },
} as const;

/** The scopes that a call needs; none for a route that is open. */
const securityOf = ({ config }: RouteOptions) => ({ security: config?.scope ? [{ token: [config.scope] }] : [] });

/** Adds the error response that any call may have (413, 429, 500, 503). */
function withError(schema: FastifySchema): FastifySchema {
  // A route may have no schema, although the type says otherwise.
  if (Object(schema) !== schema) return schema;
  return { ...schema, response: { ...Object(schema.response), default: ErrorBody } };
}

const nameKey = 'x-schema-name';

/** A copy in which `$id` has another key. The copy is made through JSON, because TypeBox schemas have symbols. */
const named = <T>(schema: T): T => (schema === undefined ? schema : JSON.parse(JSON.stringify(schema), rename));

const formatNames: Readonly<Record<string, string>> = formats;

function rename(this: unknown, _key: string, value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const { $id, format, anyOf, ...rest } = value;
  const literals = Array.isArray(anyOf) ? anyOf.map((variant) => Object(variant).const) : [];
  const isEnum = literals.length > 0 && literals.every((literal) => typeof literal === 'string');
  return {
    ...rest,
    // Client generators make better types from an enum than from a union of constants.
    ...(isEnum ? { type: 'string', enum: literals } : anyOf !== undefined && { anyOf }),
    ...(format !== undefined && { format: formatNames[String(format)] ?? format }),
    ...(typeof $id === 'string' && { [nameKey]: $id }),
  };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: { readonly [name: string]: { examples?: unknown[] } } };
}

interface Parameter {
  in: string;
  name: string;
  example?: unknown;
}

interface Response {
  description: string;
  headers?: object;
  links?: object;
  readonly content?: Readonly<Record<string, { example?: unknown; examples?: object }>>;
}

interface Operation {
  readonly operationId: string;
  description?: string;
  readonly parameters?: Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { examples?: object }>> };
  readonly responses: Readonly<Record<string, Response>>;
}

/** Moves every named schema to `components/schemas`, and replaces it with a reference. */
function hoist(document: object): Document {
  const schemas: { [key: string]: object } = {};
  const visit = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== 'object' || value === null) return value;
    const { [nameKey]: name, ...rest } = value;
    const visited = Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, visit(inner)]));
    if (typeof name !== 'string') return visited;
    schemas[name] = visited;
    return { $ref: `#/components/schemas/${name}` };
  };
  const plain = JSON.parse(JSON.stringify(document));
  const paths = visit(plain.paths ?? {});
  return { ...plain, paths, components: { ...plain.components, schemas } };
}

const text = (description: string) => ({ description, schema: { type: 'string' } });

// The route reads this header itself, so that the error names it.
const lastEventId = { in: 'header', name: 'Last-Event-ID', ...text('id of the last event that the client has') };

/** The headers of the answers that carry on a run. */
const runHeaders = {
  'Run-ID': text('the id of the run'),
  'Rivulet-Warning': text('fields of the body that no call knows, as `unknown field "modle" in body`'),
};

/** Where a client can go on from the answer that has a run. */
const runLinks = Object.fromEntries(
  ['getRun', 'listRunEvents', 'resumeRun', 'cancelRun', 'deleteRun'].map((operationId) => [
    operationId,
    { operationId, parameters: { run_id: '$response.header.Run-ID' } },
  ]),
);

/** Adds descriptions, examples, headers and links, for which the schemas of routes have no place. */
function complete<T extends Document>(document: T, agents: readonly string[]): T {
  const examples = requestExamples(agents);
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    const { operationId, parameters = [], requestBody } = operation;
    operation.description = descriptions[operationId] ?? '';
    for (const parameter of parameters) {
      // Fastify's schemas have the names of headers in lower case.
      if (parameter.in === 'header')
        parameter.name = parameter.name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
      if (operationId === 'getAgent') parameter.example = agents[0];
    }
    if (operationId === 'listRunEvents' || operationId === 'listRuns') parameters.push(lastEventId);
    for (const media of Object.values(requestBody?.content ?? {})) media.examples = examples[operationId] ?? {};
    completeResponses(operation);
  }
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    if (schemaExamples[name] !== undefined) schema.examples = [schemaExamples[name]];
  }
  return document;
}

function completeResponses({ operationId, requestBody, responses }: Operation): void {
  for (const [status, response] of Object.entries(responses)) {
    if (response.description === 'Default Response') response.description = 'success';
    const stream = response.content?.['text/event-stream'];
    if (stream !== undefined) stream.example = operationId === 'listRuns' ? feedExample : streamExample;
    if (requestBody === undefined || !status.startsWith('2')) continue;
    const location = operationId === 'createRun' && { Location: text('the address of the run') };
    response.headers = { ...runHeaders, ...location };
    response.links = runLinks;
  }
}
