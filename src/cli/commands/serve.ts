import { isIP } from 'node:net';
import closeWithGrace from 'close-with-grace';
import type { FastifyInstance } from 'fastify';
import type { Agent } from '../../core/agent.ts';
import { defaultLimits } from '../../engine/limits.ts';
import { Registry } from '../../engine/registry.ts';
import { createServer } from '../../server.ts';
import { storeName } from '../../stores/open.ts';
import { exit } from '../exit-codes.ts';
import { loadAgents } from '../load-agents.ts';
import type { LimitOption } from '../options.ts';
import { terminal } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';
import { WatchedAgents } from '../watch-agents.ts';

/** What a process that executes runs is told. */
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
 * Serves the agents of some folders until the process is told to stop.
 * @throws Error with one line that says what is wrong and where
 */
export async function serve(folders: readonly string[], options: ServeOptions): Promise<number> {
  if (!options.worker) needShared(options.store, '--no-worker');
  const watched = options.watch ? await WatchedAgents.open(folders) : undefined;
  const agents = watched?.registry ?? (await registryOf(folders));
  const { docs, playground, stalledAfter, worker: works } = options;
  const names = {
    allowedHosts: [...options.allowHost, ...(isIP(options.host) === 0 ? [options.host] : [])],
    allowedOrigins: options.allowOrigin,
  };
  const app = await createServer({ ...common(options), agents, docs, playground, stalledAfter, works, ...names });
  app.addHook('onClose', async () => watched?.close());
  const url = await app.listen({ host: options.host, port: options.port });
  terminal.print(greeting(agents.list(), url.replace('[::1]', 'localhost'), options));
  untilStopped(app, options);
  return exit.completed;
}

/**
 * Executes runs that servers of the same store were asked for, until the process is told to stop.
 * @throws Error as above
 */
export async function work(folders: readonly string[], options: WorkOptions): Promise<number> {
  needShared(options.store, 'A worker');
  const agents = await registryOf(folders);
  const app = await createServer({ agents, docs: false, playground: false, ...common(options) });
  await app.ready();
  const names = agents.list().map(({ manifest }) => manifest.name);
  terminal.print(`Rivulet works for ${storeName(options.store)} with ${names.join(', ')}`);
  untilStopped(app, options);
  return exit.completed;
}

const registryOf = async (folders: readonly string[]): Promise<Registry> =>
  new Registry((await Promise.all(folders.map(loadAgents))).flat());

const common = ({ store, publicUrl, allowNetwork, limit, logLevel }: WorkOptions) => ({
  store,
  foreign: { allowNetworks: allowNetwork },
  ...limit.server,
  limits: limit.runs,
  logger: { level: logLevel },
  ...(publicUrl !== undefined && { publicUrl }),
});

function needShared(store: string, what: string): void {
  if (/^(rediss?|postgres(ql)?):/.test(store)) return;
  throw new UsageError(
    `${what} needs a store that several processes share, redis:// or postgres://; got ${storeName(store)}`,
  );
}

function untilStopped(app: FastifyInstance, options: WorkOptions): void {
  // An agent may throw where no Observable catches it, in a timer of its own, say. Its run does not
  // end by that; all other runs would, if the process did.
  const stray = (error: unknown): void =>
    app.log.error({ err: error }, 'an agent threw outside of its run; the server goes on');
  process.on('uncaughtException', stray);
  process.on('unhandledRejection', stray);
  // Longer than the runs get, so that what follows them has its time as well; a second signal ends it at once.
  const delay = (options.limit.runs.shutdownGrace ?? defaultLimits.shutdownGrace) + 8_000;
  closeWithGrace({ delay, logger: app.log, skip: ['uncaughtException', 'unhandledRejection'] }, () => app.close());
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
  ].join('\n');
}
