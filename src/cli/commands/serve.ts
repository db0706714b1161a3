import { isIP } from 'node:net';
import { Value } from '@sinclair/typebox/value';
import closeWithGrace from 'close-with-grace';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { within } from '../../core/timing.ts';
import { compile } from '../../core/validate.ts';
import { Registry } from '../../engine/agents/registry.ts';
import { Limits } from '../../engine/limits.ts';
import { makeApiKey } from '../../http/auth/api-key.ts';
import { recordOf } from '../../http/auth/key-records.ts';
import type { RunsResponse } from '../../schema/api.ts';
import { isProtocol, loadProtocols, protocolAddresses } from '../../server/protocols.ts';
import { createServer } from '../../server/server.ts';
import { storeName } from '../../stores/open.ts';
import { isSharedStore, sharedStoreForms } from '../../stores/store-url.ts';
import { isLoopback } from '../addresses.ts';
import { exit, UsageError } from '../exit-codes.ts';
import { greeting, noAuthentication } from '../serving/greeting.ts';
import { keepObjectsYoung } from '../serving/heap.ts';
import { listen, listenError, reachableUrls } from '../serving/listen.ts';
import { loadAgents } from '../serving/load-agents.ts';
import { surviveStrayErrors } from '../serving/stray-errors.ts';
import { WatchedAgents } from '../serving/watch-agents.ts';
import { startWatchdog } from '../serving/watchdog.ts';
import { authOptions, forgetSecrets, refuseOpenAccess } from '../settings/consequences.ts';
import { envFile } from '../settings/env-file.ts';
import type { Settings } from '../settings/settings.ts';
import { formatDuration } from '../terminal/format.ts';
import { isJson, logStream } from '../terminal/log.ts';
import { terminal } from '../terminal/terminal.ts';

/**
 * Serves the agents of some folders until the process gets a signal to stop.
 * @throws Error with one line that names the problem and its place
 */
export async function serve(options: Settings): Promise<number> {
  keepObjectsYoung();
  if (!options.worker) requireSharedStore(options.store, '--no-worker');
  const configured = authOptions(options);
  refuseOpenAccess(options, configured);
  forgetSecrets(process.env);
  // With a key of its own, the process can ask its server for the open runs.
  const { key } = makeApiKey();
  const own = recordOf(key, { principal: 'rivulet serve', scopes: ['runs:read', 'admin'] });
  const auth = configured && { ...configured, keys: [...(configured.keys ?? []), own] };
  const protocols = options.protocols.filter(isProtocol);
  // Before the agents: once tsx is registered, each import asks its thread. For the protocols that was a tenth of a start.
  await loadProtocols(protocols);
  const watched = options.watch ? await WatchedAgents.open(options.agents, variables()) : undefined;
  const agents = watched?.registry ?? (await registryOf(options.agents));
  const { docs, playground, trustProxy, trustTraceContext, worker } = options;
  const names = {
    allowedHosts: [...options.allowHosts, ...(isIP(options.host) === 0 ? [options.host] : [])],
    allowedOrigins: options.allowOrigins,
  };
  const server = await serverOptions(options);
  const app = await createServer({
    ...server,
    agents,
    executeFrom: 'listening',
    docs,
    playground,
    protocols,
    trustProxy,
    trustTraceContext,
    worker,
    ...names,
    // At the server's own port, only callers with a scope read them.
    ...(auth !== undefined && { auth, metrics: server.metrics ?? true }),
  });
  app.addHook('onClose', async () => watched?.close());
  // Before it listens: from then on it has runs to hand over.
  const closing = closeOnSignal(app, agents, options, key);
  watchLoop(options);
  const url = await listen(app, options).catch(async (error) => {
    closing.uninstall();
    // Otherwise the watchers of files and the store would keep the process alive.
    await app.close();
    throw listenError(error, options);
  });
  const secured = auth !== undefined;
  const urls = reachableUrls(options.host, url);
  const addresses = protocolAddresses(protocols).map(({ clients, path }) => `${clients}: ${path}`);
  terminal.print(greeting(agents.list(), urls, { ...options, protocols: addresses, secured }));
  if (!secured && !isLoopback(options.host)) terminal.note(`${noAuthentication}\n`, 'yellow');
  return exit.completed;
}

/**
 * Executes the runs of servers that share the store, until the process gets a signal to stop.
 * @throws Error as above
 */
export async function work(options: Settings): Promise<number> {
  requireSharedStore(options.store, 'A worker');
  forgetSecrets(process.env);
  const agents = await registryOf(options.agents);
  const none = { docs: false, playground: false, protocols: [] };
  // Whether its callers are authenticated is for the servers to know.
  const captureContent = options.captureContent === 'on';
  const app = await createServer({ agents, ...none, ...(await serverOptions(options)), captureContent });
  const closing = closeOnSignal(app, agents, options);
  watchLoop(options);
  try {
    await app.ready();
  } catch (error) {
    closing.uninstall();
    throw error;
  }
  const names = agents.list().map(({ manifest }) => manifest.name);
  terminal.print(`Rivulet executes runs of ${storeName(options.store)} with ${names.join(', ')}`);
  return exit.completed;
}

/** The file of variables, as it is read again when it changes. Agents get its variables, but not the server's secrets. */
function variables(): { path: string; read(): void } | undefined {
  const file = envFile();
  if (file === undefined) return undefined;
  const read = (): void => {
    file.read();
    forgetSecrets(process.env);
  };
  return { path: file.path, read };
}

/** The agents that load. A file that does not load takes no other agent down: it is reported, and its agent is missing. */
async function registryOf(folders: readonly string[]): Promise<Registry> {
  const { hosted, broken } = await loadAgents(folders);
  for (const { message } of broken) terminal.error(`rivulet: ${message}; the file is skipped`);
  return new Registry(hosted, broken.length);
}

const serverOptions = async (settings: Settings) => {
  const { store, publicUrl, allowNetworks, runTtlByOwner, webhooks, limits, log, metrics, captureContent } = settings;
  return {
    ...limits,
    store,
    foreign: { allowNetworks },
    ...(captureContent !== 'auto' && { captureContent: captureContent === 'on' }),
    runTtlByOwner,
    webhooks,
    limits: checkLimits(Value.Clean(Limits, { ...limits })),
    logger: { level: log.level, stream: logStream(log.format) },
    ...(metrics.port !== undefined && { metrics: { port: metrics.port, host: metrics.host } }),
    publicUrl,
  };
};

/** The limits of runs among all limits. */
const checkLimits = compile(Limits, 'limits');

function requireSharedStore(store: string, subject: string): void {
  if (isSharedStore(store)) return;
  throw new UsageError(
    `${subject} needs a store that several processes share, ${sharedStoreForms}; got ${storeName(store)}`,
  );
}

/** Reports an agent that holds the event loop, unless the log has no warnings. */
function watchLoop({ log }: Settings): void {
  const isLogged = ['warn', 'info', 'debug'].includes(log.level);
  startWatchdog(!isLogged ? 'none' : isJson(log.format) ? 'json' : 'readable');
}

/** What close-with-grace would handle as well: signs of a crash, and signals that end any process. */
const leftAlone: closeWithGrace.AllEvents[] = [
  'SIGSEGV',
  'SIGABRT',
  'SIGBUS',
  'SIGILL',
  'SIGFPE',
  'SIGTRAP',
  'SIGQUIT',
  'SIGUSR2',
  'uncaughtException',
  'unhandledRejection',
];

/**
 * Whether SIGHUP stops the server. Without a terminal it has no effect: `nohup` promises that, and Node, which resets all
 * signals when it starts, would end.
 */
function stopsAtHangup(log: FastifyBaseLogger): boolean {
  if (terminal.isAttached) return true;
  process.on('SIGHUP', () => log.info('SIGHUP has no effect without a terminal; SIGTERM stops the server'));
  return false;
}

function closeOnSignal(app: FastifyInstance, agents: Registry, options: Settings, key = '') {
  const grace = options.limits.shutdownGrace;
  // Longer than the runs' grace, to leave time for closing streams and the store. A second signal exits at once.
  const delay = grace + 8_000;
  const onSecondSignal = (signal: string): void => {
    if (signal === 'SIGINT') process.exit(exit.interrupted);
  };
  const skip: closeWithGrace.AllEvents[] = stopsAtHangup(app.log) ? leftAlone : [...leftAlone, 'SIGHUP'];
  const closing = closeWithGrace({ delay, logger: app.log, skip, onSecondSignal }, async ({ signal, manual }) => {
    if (signal !== undefined) app.log.info(`${signal}: the server stops`);
    if (signal === 'SIGINT') await noteOpenRuns(app, agents, options, key);
    await app.close();
    if (manual) throw new Error('ended: more than ten errors outside of runs within a minute');
  });
  // With --watch, agents are being written, and the next save repairs them.
  surviveStrayErrors(app.log, options.watch ? undefined : closing.close);
  return closing;
}

/** Milliseconds that finding the open runs may delay the end of the server. */
const maxLookUp = 1_000;

/** Prints how many runs the server waits for, and what ends it at once. */
async function noteOpenRuns(
  app: FastifyInstance,
  agents: Registry,
  { store, limits }: Settings,
  key: string,
): Promise<void> {
  terminal.leavePromptLine();
  const grace = formatDuration(limits.shutdownGrace);
  const atMost = `to end, at most ${grace}; press Ctrl-C again to end at once.`;
  // A shared store has the runs of other processes as well.
  if (isSharedStore(store)) return terminal.note(`Waiting for the runs of this process ${atMost}`, 'yellow');
  const answer = app
    .inject({ url: '/runs?status=in-progress&limit=100', headers: { authorization: `Bearer ${key}` } })
    .then((response): RunsResponse => response.json());
  const page = await within(maxLookUp, answer).catch(() => undefined);
  const durable = new Set(agents.list().flatMap(({ manifest, options }) => (options.durable ? [manifest.name] : [])));
  const runs = page?.runs ?? [];
  const staying = runs.filter(({ agent_name }) => durable.has(agent_name));
  const ending = runs.filter(({ agent_name }) => !durable.has(agent_name));
  if (ending.length > 0) terminal.note(`Waiting for ${runCount(ending.length)} ${atMost}`, 'yellow');
  if (staying.length === 0) return;
  terminal.note(
    `The next server goes on with ${runCount(staying.length)} of durable agents. A step has ${grace} to end.`,
  );
}

const runCount = (count: number): string => (count === 1 ? 'one run' : `${count} runs`);
