import type { FastifyInstance } from 'fastify';
import { docsPolicy } from './security-headers.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * OpenAPI 3.1 at `/openapi.json` and a page to browse it at `/docs`, from the schemas of the routes
 * that are registered after this. `base` is the prefix as clients see it.
 */
export async function serveOpenApi(app: FastifyInstance, version: string, base: string): Promise<void> {
  // Imported only where it is served: it is a fifth of the time that a start takes.
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
    },
    // The plugin would resolve `$id` by itself, into names like def-0.
    transform: ({ schema, url }) => ({ schema: named(schema), url }),
    transformObject: (document) =>
      'openapiObject' in document ? hoist(document.openapiObject) : document.swaggerObject,
  });
  await app.register(swaggerUi, { routePrefix: '/docs', indexPrefix: base, staticCSP: docsPolicy });
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger());
}

const nameKey = 'x-schema-name';

/** A copy, through JSON since TypeBox keeps symbols on its schemas, in which `$id` is put away under another key. */
const named = <T>(schema: T): T => (schema === undefined ? schema : JSON.parse(JSON.stringify(schema), rename));

function rename(this: unknown, _key: string, value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || typeof value.$id !== 'string')
    return value;
  const { $id, ...rest } = value;
  return { ...rest, [nameKey]: $id };
}

/** Moves every schema that has a name to `components/schemas`, and refers to it where it stood. */
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
