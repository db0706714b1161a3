import closeWithGrace from 'close-with-grace';
import type { FastifyInstance } from 'fastify';
import type { Agent } from '../core/agent.ts';
import { defaultLimits, type Limits } from '../engine/limits.ts';
import { Registry } from '../engine/registry.ts';
import { createServer } from '../server.ts';
import { openStore, storeName } from '../stores/open.ts';
import { exit } from './exit-codes.ts';
import { loadAgents } from './load-agents.ts';
import { WatchedAgents } from './watch-agents.ts';

export interface ServeOptions {
  readonly watch?: boolean;
  readonly host: string;
  readonly port: number;
  readonly store: string;
  readonly publicUrl?: string;
  readonly allowNetwork: readonly string[];
  readonly limit: Partial<Limits>;
  readonly stalledAfter: number;
  readonly docs: boolean;
  readonly playground: boolean;
  readonly logLevel: string;
}

/**
 * Serves the agents of some folders until the process is told to stop.
 * @throws Error with one line that says what is wrong and where
 */
export async function serve(folders: readonly string[], options: ServeOptions): Promise<number> {
  const app = await listen(folders, options);
  // An agent may throw where no Observable catches it, in a timer of its own, say. Its run does not
  // end by that; all other runs would, if the process did.
  const stray = (error: unknown): void =>
    app.log.error({ err: error }, 'an agent threw outside of its run; the server goes on');
  process.on('uncaughtException', stray);
  process.on('unhandledRejection', stray);
  // Longer than the runs get, so that what follows them has its time as well; a second signal ends it at once.
  const delay = (options.limit.stopTime ?? defaultLimits.stopTime) + 8_000;
  closeWithGrace({ delay, logger: app.log, skip: ['uncaughtException', 'unhandledRejection'] }, () => app.close());
  return exit.completed;
}

async function listen(folders: readonly string[], options: ServeOptions): Promise<FastifyInstance> {
  const watched = options.watch ? await WatchedAgents.open(folders) : undefined;
  const agents = watched?.registry ?? new Registry((await Promise.all(folders.map(loadAgents))).flat());
  const store = await openStore(options.store);
  const app = await createServer({
    agents,
    store,
    foreign: { allowNetworks: options.allowNetwork },
    limits: options.limit,
    docs: options.docs,
    playground: options.playground,
    stalledAfter: options.stalledAfter,
    logger: { level: options.logLevel },
    ...(options.publicUrl !== undefined && { publicUrl: options.publicUrl }),
  });
  app.addHook('onClose', () => {
    watched?.close();
    return store.close();
  });
  const url = await app.listen({ host: options.host, port: options.port });
  process.stdout.write(greeting(agents.list(), url.replace('[::1]', 'localhost'), options));
  return app;
}

/** What the server says when it is up: whom it hosts, where, and a line to try. */
function greeting(agents: readonly Agent[], url: string, options: ServeOptions): string {
  const { store, docs, playground, watch } = options;
  const names = agents.map(({ manifest }) => manifest.name);
  const width = Math.max(...names.map((name) => name.length));
  const lines = agents.map(
    ({ manifest: { name, description } }) => `  ${name.padEnd(width)}  ${description.split('\n', 1)[0]}`,
  );
  const first = names.includes('echo') ? 'echo' : (names[0] ?? 'echo');
  const body = `{"agent_name":"${first}","mode":"stream","input":[{"parts":[{"content":"Hello"}]}]}`;
  return [
    '',
    `Rivulet is up at ${url} with ${names.length === 1 ? 'one agent' : `${names.length} agents`}, kept in ${storeName(store)}`,
    '',
    ...lines,
    '',
    ...(watch ? ['Agents are loaded again when their files change.'] : []),
    ...(playground ? [`Playground: ${url}/`] : []),
    ...(docs ? [`Documentation: ${url}/docs`] : []),
    'Try it:',
    '',
    `  curl -N ${url}/runs -H 'Content-Type: application/json' -d '${body}'`,
    '',
    '',
  ].join('\n');
}
