import { Calls } from '../client/calls.ts';
import { defaultReconnect, type Reconnect } from '../client/follow.ts';
import type { Rivulet } from '../client/rivulet.ts';
import { type Agent, type AgentLog, silentLog } from '../core/agent.ts';
import { once } from '../core/once.ts';
import type { Quotas } from '../core/ports/quotas.ts';
import type { Store } from '../core/ports/store.ts';
import type { Traces } from '../core/ports/traces.ts';
import { type Hosted, Registry } from '../engine/agents/registry.ts';
import type { Dispatcher } from '../engine/dispatch/dispatcher.ts';
import { Engine } from '../engine/engine.ts';
import { type Limits, parseLimits, type RunTtlByOwner } from '../engine/limits.ts';
import { type HttpLimits, httpLimits } from '../http/limits/limits.ts';
import { createFetch, type ForeignOptions } from '../http/outbound/remote-fetch.ts';
import { WebhookSecrets } from '../http/outbound/webhook-secrets.ts';
import { createSend, webhookProblem } from '../http/outbound/webhook-send.ts';
import { version } from '../http/version.ts';
import { pushForm, pushFormName } from '../protocols/a2a/push-form.ts';
import { OwnCounters } from '../quotas/own-counters.ts';
import { readStoreUrl } from '../stores/store-url.ts';
import { openTraces } from '../tracing/opentelemetry.ts';
import { backendOf } from './backend.ts';
import { logEndedRuns } from './ended-run-log.ts';
import { type CustomPrincipal, InProcess } from './in-process.ts';

/** The agents, and the store and limits that they run with; for a server and for a runtime. */
export interface HostOptions {
  /** The agents to host; with a source (a file's path), errors about them name it. Those of a Registry can be replaced. */
  readonly agents: Iterable<Agent | Hosted> | Registry;
  /** A store, which the caller closes, or the URL of one to open and close. Default `memory:`. */
  readonly store?: Store | string;
  /** Decides which runs this process executes. Default: the one that belongs to the store. */
  readonly dispatcher?: Dispatcher;
  /** The counters of callers, for their limits. Default: those of the store's URL, or of this process. */
  readonly quotas?: Quotas;
  /** Whether this process executes runs; where several share a store, some may only serve. Default true. */
  readonly worker?: boolean;
  /** Base of the URLs in sessions, such as `https://agents.example.com`. Default: the address that a server listens on. */
  readonly publicUrl?: string;
  /** Reading other servers' sessions. */
  readonly foreign?: ForeignOptions;
  /**
   * Milliseconds for which final runs of an owner, such as `key:alice` or `tenant:acme`, are kept, with their messages; only
   * a time that is shorter than the limit `runTtl` has an effect. Default none.
   */
  readonly runTtlByOwner?: RunTtlByOwner;
  /** Sending webhooks. Default: a request with a webhook is refused. */
  readonly webhooks?: {
    /** Master secrets, of at least 32 characters, the same on all nodes. The first one is current, the others expire. */
    readonly secrets: readonly string[];
  };
  /**
   * Keep what models were given and what they answered, and the lines of `context.log`, with each run, for the inspector.
   * It is erased with the run. Default: false; servers without authentication: true.
   */
  readonly captureContent?: boolean;
  /** Limits of runs: their size, their number and their time. */
  readonly limits?: Partial<Limits>;
  /**
   * Make a run's span a child of the trace context in the headers of its request. Default: link to it, because any
   * client can send it. Set it where only your own services, or a gateway of yours, send requests.
   */
  readonly trustTraceContext?: boolean;
}

/** Receives failures of the store and the lines that agents log. A logger of pino or Fastify fits. */
export interface RuntimeLog {
  child(fields: { readonly run_id: string }): AgentLog;
  /** Receives a line for each run that has ended, unless it failed. */
  info?(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface RuntimeOptions extends HostOptions, Partial<Pick<HttpLimits, 'bodyLimit' | 'bodyValues'>> {
  /** How readers retry when the store is unavailable, or too many runs are at work. */
  readonly reconnect?: Partial<Omit<Reconnect, 'idleTimeout'>>;
  /** Default: nothing is logged. */
  readonly log?: RuntimeLog;
}

/**
 * Agents that run in this process, called as a server's client calls them. Servers may serve it: `createServer({ runtime })`.
 */
export interface Runtime extends Rivulet, AsyncDisposable {
  /**
   * The calls of a principal that the app has authenticated: it sees and changes only what it owns, in this process and
   * over HTTP. The calls of the runtime itself see everything.
   */
  as(principal: CustomPrincipal): Rivulet;
  /**
   * Stops: durable runs stay for the next process when their steps have ended, at the latest after `shutdownGrace`; others
   * fail then. Closes the quotas, and the store if the runtime has opened it. Close servers of the runtime first.
   */
  close(): Promise<void>;
}

const noLog: RuntimeLog = { child: () => silentLog, warn() {}, error() {} };
/** The base of the URLs in sessions before a server listens. */
const noAddress = 'http://127.0.0.1:8000';

/** Where clients reach a runtime: at its public URL, or else at the address of the last server that listens. */
interface Base {
  readonly publicUrl: string | undefined;
  /** Of each open server. */
  readonly addresses: Set<() => Address>;
}

/** The origin is undefined while the server does not listen. */
interface Address {
  readonly origin: string | undefined;
  readonly prefix: string;
}

function addressOf({ addresses }: Base): string {
  const all = [...addresses].map((address) => address());
  const { origin = noAddress, prefix = '' } = all.findLast(({ origin }) => origin !== undefined) ?? all.at(-1) ?? {};
  return origin + prefix;
}

/** What runs behind the calls of a runtime. */
interface Host {
  readonly engine: Engine;
  readonly registry: Registry;
  readonly quotas: Quotas;
  /** Of webhooks; undefined where none are sent. */
  readonly secrets: WebhookSecrets | undefined;
  /** Undefined where nothing is traced. */
  readonly traces: Traces | undefined;
  readonly base: Base;
  /** Such as `sqlite`; `custom` for a store that the caller has opened. */
  readonly storeKind: string;
  readonly closeStore: () => Promise<void>;
}

/** A runtime as servers know it. */
export class LocalRuntime extends Calls implements Runtime {
  readonly host: Host;
  readonly #inProcess: InProcess;
  #stopped: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  private constructor(host: Host, inProcess: InProcess) {
    super(inProcess);
    this.host = host;
    this.#inProcess = inProcess;
  }

  as(principal: CustomPrincipal): Rivulet {
    return new Calls(this.#inProcess.as(principal));
  }

  /** Whether calls are refused. */
  get stopping(): boolean {
    return this.#stopped !== undefined;
  }

  get engine(): Engine {
    return this.host.engine;
  }

  /** Opens what the options name; runs are executed after `startEngine`. @throws as `createRuntime` */
  static async open(options: RuntimeOptions): Promise<LocalRuntime> {
    const { agents, worker = true, publicUrl, foreign = {}, log = noLog } = options;
    const [limits, bodies] = [parseLimits(options.limits), httpLimits(options)];
    const registry = agents instanceof Registry ? agents : new Registry(hosted(agents));
    const fetchResource = createFetch(foreign);
    const { store, quotas = new OwnCounters() } = await backendOf(options, (text, err) =>
      log.warn(err === undefined ? {} : { err }, text),
    );
    const { secrets: masters = [] } = options.webhooks ?? {};
    const secrets = masters.length === 0 ? undefined : new WebhookSecrets(masters);
    const problemOf = (url: string) => webhookProblem(url, foreign.allowNetworks);
    checkWebhooks(registry, secrets === undefined ? undefined : problemOf);
    const base: Base = { publicUrl, addresses: new Set() };
    const traces = await openTraces({
      version: version(),
      trusted: options.trustTraceContext === true,
      onWarning: (text) => log.warn({}, text),
    });
    const engine = new Engine({
      registry,
      store,
      dispatcher: options.dispatcher,
      worker,
      fetchResource,
      webhooks: secrets && {
        send: createSend(secrets, foreign.allowNetworks),
        problemOf,
        forms: { [pushFormName]: pushForm },
      },
      publicUrl: () => publicUrl?.replace(/\/+$/, '') ?? addressOf(base),
      logFor: (run_id) => log.child({ run_id }),
      capturesContent: options.captureContent === true,
      onFailure: (err) => log.error({ err }, 'the store did not answer'),
      limits,
      runTtlByOwner: options.runTtlByOwner,
      traces,
    });
    if (log !== noLog) {
      logEndedRuns(engine, log);
      engine.on('urlSwitchedOff', ({ url, ...rest }) => {
        // The path of a webhook's URL is often a secret.
        const receiver = URL.canParse(url) ? new URL(url).origin : 'no URL';
        log.warn({ ...rest, receiver }, 'a webhook URL was switched off');
      });
    }
    const storeKind = kindOf(options.store);
    const closeStore = async () => (store === options.store ? undefined : store.close());
    return new LocalRuntime(
      { engine, registry, quotas, secrets, traces, base, storeKind, closeStore },
      new InProcess({ access: engine, limits: bodies, reconnect: { ...defaultReconnect, ...options.reconnect }, log }),
    );
  }

  /** Requests can be served from now on; see `Engine.connect`. */
  readonly connectEngine = once(() => this.engine.connect());

  /** Starts to execute runs, first those that an earlier process left unfinished. May be called again after an error. */
  readonly startEngine = once(async () => {
    await this.connectEngine();
    await this.engine.execute();
  });

  /** Refuses calls, stops all runs and ends all streams; the store stays open. */
  stopEngine(): Promise<void> {
    this.#stopped ??= this.#inProcess.stop(this.engine);
    return this.#stopped;
  }

  close(): Promise<void> {
    this.#closed ??= this.stopEngine()
      .finally(() => this.host.quotas.close())
      .finally(this.host.closeStore);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Runs agents in this process, without a port, with the interface of `createClient`.
 * @throws Error with one line that says which agent, limit or store is wrong, and why
 */
export async function createRuntime(options: RuntimeOptions): Promise<Runtime> {
  const runtime = await LocalRuntime.open(options);
  try {
    await runtime.startEngine();
  } catch (error) {
    await runtime.close();
    throw error;
  }
  return runtime;
}

/** @throws Error that names an agent whose webhook cannot be sent */
function checkWebhooks(registry: Registry, problemOf: ((url: string) => string | undefined) | undefined): void {
  for (const { manifest, options } of registry.list()) {
    if (options.webhook === undefined) continue;
    const problem = problemOf === undefined ? 'no webhooks.secrets are set' : problemOf(options.webhook.url);
    if (problem !== undefined) throw new Error(`agent ${manifest.name}: options.webhook: ${problem}`);
  }
}
const kindOf = (store: Store | string = 'memory:'): string =>
  typeof store === 'string' ? (readStoreUrl(store)?.kind ?? 'custom') : 'custom';

const hosted = (agents: Iterable<Agent | Hosted>): Hosted[] =>
  [...agents].map((one) => ('agent' in one ? one : { agent: one, source: `agent ${one.manifest?.name}` }));
