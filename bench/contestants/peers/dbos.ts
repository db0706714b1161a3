/**
 * DBOS behind Fastify: a request starts a workflow of one step, and is answered when the workflow has ended. Asked as
 * Rivulet is for a sync run. `dbos URL` takes the database in which DBOS makes its tables.
 */
import { DBOS } from '@dbos-inc/dbos-sdk';
import Fastify from 'fastify';
import { report } from '../tokens.ts';

interface Asked {
  readonly input: readonly { readonly parts: readonly { readonly content: string }[] }[];
}

const [, , url] = process.argv;
DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logLevel: 'error', runAdminServer: false });
const echo = DBOS.registerWorkflow((text: string) => DBOS.runStep(async () => text, { name: 'answer' }), {
  name: 'echo',
});
await DBOS.launch();
const app = Fastify();
app.post<{ Body: Asked }>('/runs', async ({ body }) => {
  const content = await echo(body.input[0]?.parts[0]?.content ?? '');
  return { output: [{ role: 'agent', parts: [{ content_type: 'text/plain', content }] }] };
});
await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port));
