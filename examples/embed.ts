import { fileURLToPath } from 'node:url';
import Fastify, { type FastifyInstance } from 'fastify';
import { defineAgent, rivulet } from 'rivulet';

const prefix = '/agents-api';

const greet = defineAgent({ name: 'greet', description: 'Greets the user.' }, () => ['Good ', 'day!']);

/** An existing app with its own error handling, and Rivulet under a prefix. `origin` is the app's public URL. */
export async function build(origin = 'http://127.0.0.1:3000'): Promise<FastifyInstance> {
  const app = Fastify();

  app.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) =>
    reply.code(error.statusCode ?? 500).send({ problem: error.message }),
  );
  app.setNotFoundHandler((request, reply) => reply.code(404).send({ problem: `no page at ${request.url}` }));
  app.get<{ Params: { id: number } }>(
    '/orders/:id',
    { schema: { params: { type: 'object', properties: { id: { type: 'integer' } } } } },
    async ({ params }) => {
      if (params.id === 13) throw new Error('the warehouse is closed');
      return { order: params.id };
    },
  );

  // Rivulet's error handler, parsers and validators apply under the prefix only; the app's do not apply there.
  await app.register(rivulet, {
    prefix,
    agents: [greet],
    store: 'memory:', // 'sqlite:./data/rivulet.db' keeps runs and sessions on disk
    publicUrl: `${origin}${prefix}`, // sessions have absolute URLs, and a server behind a proxy does not know its own
  });
  return app;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const app = await build();
  console.log(`curl ${await app.listen({ port: 3000 })}${prefix}/agents`);
}
