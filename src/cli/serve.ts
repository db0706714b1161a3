import type { FastifyInstance } from 'fastify';
import type { Limits } from '../engine/limits.ts';
import type { Hosted } from '../engine/registry.ts';
import { createServer } from '../server.ts';
import { openStore } from '../stores/open.ts';
import { loadAgents } from './load-agents.ts';

export interface ServeOptions {
  readonly host: string;
  readonly port: number;
  readonly store: string;
  readonly publicUrl?: string;
  readonly allowNetwork: readonly string[];
  readonly limit: Partial<Limits>;
  readonly stalledAfter: number;
  readonly docs: boolean;
  readonly logLevel: string;
}

/**
 * Serves the agents of some folders until the process is told to stop.
 * @throws Error with one line that says what is wrong and where
 */
export async function serve(folders: readonly string[], options: ServeOptions): Promise<FastifyInstance> {
  const agents = (await Promise.all(folders.map(loadAgents))).flat();
  const store = await openStore(options.store);
  const app = await createServer({
    agents,
    store,
    foreign: { allowNetworks: options.allowNetwork },
    limits: options.limit,
    docs: options.docs,
    stalledAfter: options.stalledAfter,
    logger: { level: options.logLevel },
    ...(options.publicUrl !== undefined && { publicUrl: options.publicUrl }),
  });
  app.addHook('onClose', () => store.close());
  const url = await app.listen({ host: options.host, port: options.port });
  process.stdout.write(greeting(agents, url.replace('[::1]', 'localhost'), options));
  return app;
}

/** What the server says when it is up: whom it hosts, where, and a line to try. */
function greeting(agents: readonly Hosted[], url: string, { store, docs }: ServeOptions): string {
  const names = agents.map(({ agent }) => agent.manifest.name).sort();
  const width = Math.max(...names.map((name) => name.length));
  const lines = agents
    .map(({ agent }) => agent.manifest)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, description }) => `  ${name.padEnd(width)}  ${description.split('\n', 1)[0]}`);
  const first = names.includes('echo') ? 'echo' : names[0];
  const body = `{"agent_name":"${first}","mode":"stream","input":[{"parts":[{"content":"Hello"}]}]}`;
  return [
    '',
    `Rivulet is up at ${url} with ${names.length === 1 ? 'one agent' : `${names.length} agents`}, kept in ${store}`,
    '',
    ...lines,
    '',
    ...(docs ? [`Documentation: ${url}/docs`] : []),
    'Try it:',
    '',
    `  curl -N ${url}/runs -H 'Content-Type: application/json' -d '${body}'`,
    '',
    '',
  ].join('\n');
}
