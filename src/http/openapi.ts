import type { FastifyInstance, FastifySchema } from 'fastify';
import { ErrorBody } from '../schema/error.ts';
import { formats } from '../schema/formats.ts';
import { docsPolicy } from './security-headers.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface OpenApiOptions {
  /** Version of Rivulet. */
  readonly version: string;
  /** Base URL of the API, absolute or as a path. */
  readonly server: string;
  /** The prefix as clients see it. */
  readonly base: string;
  /** Name of an agent of this server, for the example request of the page at `/docs`. */
  readonly agent: string;
}

/**
 * Serves OpenAPI 3.1 at `/openapi.json` and a page to browse it at `/docs`, from the schemas of the routes that are
 * registered later.
 */
export async function serveOpenApi(
  app: FastifyInstance,
  { version, server, base, agent }: OpenApiOptions,
): Promise<void> {
  // Imported only where needed: the import takes a fifth of the start.
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import('@fastify/swagger'),
    import('@fastify/swagger-ui'),
  ]);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Rivulet',
        description:
          'Hosts agents and streams their runs. Agent Communication Protocol, with streams that can be resumed.',
        version,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: server }],
      tags: [
        { name: 'agents', description: 'The agents of this server and their manifests' },
        { name: 'runs', description: 'Executions of agents: start, follow, resume, cancel, delete' },
        { name: 'sessions', description: 'Conversations: the messages and the state that runs share' },
        { name: 'service', description: 'The process itself' },
      ],
    },
    // The plugin would replace each `$id` with a name like def-0.
    transform: ({ schema, url }) => ({ schema: named(withDefaults(schema, agent)), url }),
    transformObject: (document) =>
      'openapiObject' in document ? hoist(document.openapiObject) : document.swaggerObject,
  });
  await app.register(swaggerUi, { routePrefix: '/docs', indexPrefix: base, staticCSP: docsPolicy });
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger());
}

/** Adds the error response that any call may have (413, 429, 500, 503), and an example of a run. */
function withDefaults(schema: FastifySchema, agent: string): FastifySchema {
  // A route may have no schema, although the type says otherwise.
  if (Object(schema) !== schema) return schema;
  const response = { ...Object(schema.response), default: ErrorBody };
  if (Object(schema.body).$id !== 'RunCreateRequest') return { ...schema, response };
  const input = [{ role: 'user', parts: [{ content_type: 'text/plain', content: 'Hello' }] }];
  return {
    ...schema,
    response,
    body: { ...Object(schema.body), examples: [{ agent_name: agent, input, mode: 'sync' }] },
  };
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

/** Moves every named schema to `components/schemas`, and replaces it with a reference. */
function hoist<T extends object>(document: T): T {
  const schemas: { [key: string]: Json } = {};
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
