import { isIP } from 'node:net';
import closeWithGrace from 'close-with-grace';
import type { FastifyInstance } from 'fastify';
import type { Agent } from '../../core/agent.ts';
import { defaultLimits } from '../../engine/limits.ts';
import { Registry } from '../../engine/registry.ts';
import { isReported } from '../../engine/unhandled.ts';
import { createServer } from '../../server.ts';
import { storeName } from '../../stores/open.ts';
import { exit, UsageError } from '../exit-codes.ts';
import { loadAgents } from '../load-agents.ts';
import type { LimitOption } from '../options.ts';
import { terminal } from '../terminal.ts';
import { WatchedAgents } from '../watch-agents.ts';

/** Options of `worker`, and of `serve`, which executes runs as well. */
export interface WorkOptions {
  readonly store: string;
  readonly publicUrl?: string;
  readonly allowNetwork: readonly string[];
  readonly limit: LimitOption;
  readonly logLevel: string;
}

export interface ServeOptions extends WorkOptions {
  readonly watch?: boolean;
  readonly worker: boolean;
  readonly host: string;
  readonly allowHost: readonly string[];
  readonly allowOrigin: readonly string[];
  readonly port: number;
  readonly stalledAfter: number;
  readonly docs: boolean;
  readonly playground: boolean;
}

/**
 * Serves the agents of some folders until the process gets a signal to stop.
 * @throws Error with one line that names the problem and its place
 */
export async function serve(folders: readonly string[], options: ServeOptions): Promise<number> {
  if (!options.worker) requireSharedStore(options.store, '--no-worker');
  const watched = options.watch ? await WatchedAgents.open(folders) : undefined;
  const agents = watched?.registry ?? (await registryOf(folders));
  const { docs, playground, stalledAfter, worker: works } = options;
  const names = {
    allowedHosts: [...options.allowHost, ...(isIP(options.host) === 0 ? [options.host] : [])],
    allowedOrigins: options.allowOrigin,
  };
  const app = await createServer({
    ...serverOptions(options),
    agents,
    docs,
    playground,
    stalledAfter,
    works,
    ...names,
  });
  app.addHook('onClose', async () => watched?.close());
  const url = await app.listen({ host: options.host, port: options.port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new Error(
      `port ${options.port} of ${options.host} is in use; give another one with --port, or 0 for a free one`,
    );
  });
  terminal.print(greeting(agents.list(), url.replace('[::1]', 'localhost'), options));
  closeOnSignal(app, options);
  return exit.completed;
}

/**
 * Executes the runs of servers that share the store, until the process gets a signal to stop.
 * @throws Error as above
 */
export async function work(folders: readonly string[], options: WorkOptions): Promise<number> {
  requireSharedStore(options.store, 'A worker');
  const agents = await registryOf(folders);
  const app = await createServer({ agents, docs: false, playground: false, ...serverOptions(options) });
  await app.ready();
  const names = agents.list().map(({ manifest }) => manifest.name);
  terminal.print(`Rivulet executes runs of ${storeName(options.store)} with ${names.join(', ')}`);
  closeOnSignal(app, options);
  return exit.completed;
}

const registryOf = async (folders: readonly string[]): Promise<Registry> =>
  new Registry((await Promise.all(folders.map(loadAgents))).flat());

const serverOptions = ({ store, publicUrl, allowNetwork, limit, logLevel }: WorkOptions) => ({
  store,
  foreign: { allowNetworks: allowNetwork },
  ...limit.server,
  limits: limit.runs,
  logger: { level: logLevel },
  ...(publicUrl !== undefined && { publicUrl }),
});

function requireSharedStore(store: string, subject: string): void {
  if (/^(rediss?|postgres(ql)?):/.test(store)) return;
  throw new UsageError(
    `${subject} needs a store that several processes share, redis:// or postgres://; got ${storeName(store)}`,
  );
}

function closeOnSignal(app: FastifyInstance, options: WorkOptions): void {
  // An agent may throw where no Observable catches the error, for example in a timer. Its run goes on; if the process
  // ended, all other runs would end, too.
  const logUncaught = (error: unknown): void => {
    if (!isReported(error)) app.log.error({ err: error }, 'an agent threw outside of its run; the server goes on');
  };
  process.on('uncaughtException', logUncaught);
  process.on('unhandledRejection', logUncaught);
  // Longer than the runs' grace, to leave time for closing streams and the store. A second signal exits at once.
  const delay = (options.limit.runs.shutdownGrace ?? defaultLimits.shutdownGrace) + 8_000;
  closeWithGrace({ delay, logger: app.log, skip: ['uncaughtException', 'unhandledRejection'] }, () => app.close());
}

/** The text printed at start-up: the agents, the URLs and a command to try. */
function greeting(agents: readonly Agent[], url: string, options: ServeOptions): string {
  const { store, docs, playground, watch } = options;
  const names = agents.map(({ manifest }) => manifest.name);
  const width = Math.max(...names.map((name) => name.length));
  const lines = agents.map(
    ({ manifest: { name, description } }) => `  ${name.padEnd(width)}  ${description.split('\n', 1)[0]}`,
  );
  const example = ['demo', 'echo'].find((name) => names.includes(name)) ?? names[0] ?? 'echo';
  const body = `{"agent_name":"${example}","mode":"stream","input":[{"parts":[{"content":"Hello"}]}]}`;
  return [
    '',
    `Rivulet is listening at ${url} with ${names.length === 1 ? 'one agent' : `${names.length} agents`}, store ${storeName(store)}`,
    '',
    ...lines,
    '',
    ...(watch ? ['Agents are reloaded when their files change.'] : []),
    ...(playground ? [`Playground: ${url}/`] : []),
    ...(docs ? [`Documentation: ${url}/docs`] : []),
    'Try it:',
    '',
    `  curl -N ${url}/runs -H 'Content-Type: application/json' -d '${body}'`,
    '',
  ].join('\n');
}
