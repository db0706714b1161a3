import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { backoff, TooLate, within } from '../../core/timing.ts';
import type { ClusterAddress } from '../store-url.ts';
import { noNode } from './errors.ts';

/** The client of a Redis server, or of a Redis Cluster. Both have the same commands. */
export type RedisClient = Redis | Cluster;

const options = {
  connectionName: 'rivulet',
  lazyConnect: true,
  connectTimeout: 3_000,
  socketTimeout: 10_000,
  disconnectTimeout: 500,
  // The client must not send commands again: reads fail soon, and `CommitQueue` repeats commits.
  maxRetriesPerRequest: 0,
} as const satisfies RedisOptions;

/** Milliseconds between two looks at which nodes a cluster has. */
const refreshInterval = 5_000;

/** Connects to one server. @throws the error of the server or the network */
export async function connectRedis(url: string): Promise<Redis> {
  return connected(
    new Redis(url, {
      ...options,
      enableOfflineQueue: false,
      retryStrategy: (failures) => backoff(failures),
      // The server has become a replica; its name may resolve to the new primary.
      reconnectOnError: ({ message }) => /(?:^|: -?)READONLY\b/.test(message),
    }),
  );
}

/**
 * Connects to a cluster. The client follows redirects, and sends a command again for up to 1.6 s where its node has gone or
 * the slot moves: commits have numbers, so that none is applied twice.
 * @throws the last error of a node or the network
 */
export async function connectCluster(address: ClusterAddress): Promise<Cluster> {
  const cluster = await connected(clusterClient(address, options, { enableOfflineQueue: false }));
  // Each part of the store has a listener. Node would warn of the eleventh.
  cluster.setMaxListeners(0);
  // Else it learns of new and removed nodes only where a command goes to the wrong one. Its own `slotsRefreshInterval` goes on
  // for good after a close that comes during a refresh.
  const refresh = setInterval(() => cluster.refreshSlotsCache(), refreshInterval).unref();
  cluster.once('end', () => clearInterval(refresh));
  return cluster;
}

/** A client that connects later. `ofNode`: the settings of its connections. */
export const clusterClient = (
  { nodes, username, password, tls }: ClusterAddress,
  ofNode: RedisOptions,
  settings: ClusterOptions = {},
): Cluster =>
  new Cluster([...nodes], {
    lazyConnect: true,
    slotsRefreshTimeout: 3_000,
    clusterRetryStrategy: (failures) => backoff(failures),
    ...settings,
    // With TLS, the certificate has the names that the nodes announce.
    ...(tls && { dnsLookup: (host, done) => done(null, host) }),
    redisOptions: {
      ...ofNode,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(tls && { tls: {} }),
    },
  });

/** Milliseconds for a connection. The client of a cluster may wait without an end for a node that has gone. */
const connectTimeout = 4_000;

/** Connects a client, and disconnects it where that fails. @throws the error of the server or the network */
export async function connected<Client extends RedisClient>(client: Client): Promise<Client> {
  let failure: unknown;
  let nodeFailure: Error | undefined;
  const failed = (error: unknown): void => {
    failure ??= error;
  };
  client.on('error', failed);
  // The error of a cluster's client says less than that of a node.
  if (client instanceof Cluster) client.on('node error', (error) => (nodeFailure = error));
  // The client reports a missing database with an event only, and would use another database.
  await within(connectTimeout, client.connect()).catch(failed);
  if (failure !== undefined) {
    client.disconnect();
    // The cluster is down, or its nodes answer too late: a later attempt may succeed.
    if (failure instanceof TooLate) throw Object.assign(failure, { cause: nodeFailure });
    if (nodeFailure?.message === 'Connection is closed.') throw new Error(noNode, { cause: failure });
    throw nodeFailure ?? failure;
  }
  // Later connection errors surface in the commands that fail.
  client.off('error', failed).on('error', () => {});
  return client;
}

/** Milliseconds for each answer while a store is opened: the client of a cluster may leave commands without one. */
const answerTimeout = 20_000;

/** The answer to a command, while a store is opened. */
export const answered = <Answer>(answer: Promise<Answer>): Promise<Answer> => within(answerTimeout, answer);

/** Opens a store on a client, and disconnects the client where that fails. */
export async function orDisconnect<Opened>(client: RedisClient, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open();
  } catch (error) {
    client.disconnect();
    throw error;
  }
}

/** Milliseconds for a clean close of the connections. */
const closeTimeout = 1_000;

/** Closes a client when its stores are drained, or soon: what is still pending fails with the connection. */
export async function closeClient(client: RedisClient, drained: Promise<unknown>): Promise<void> {
  await within(
    closeTimeout,
    drained.then(() => client.quit()),
  ).catch(() => {});
  client.disconnect();
  await drained;
}

/** The servers that take writes. */
export const primariesOf = (client: RedisClient): Redis[] =>
  client instanceof Cluster ? client.nodes('master') : [client];

/**
 * A connection for a subscription, with the settings of the client. In a cluster, every node passes on what any node
 * publishes, so it goes to any: to another one, where the last one has gone.
 */
export function subscriberOf(client: RedisClient, settings: RedisOptions): Redis {
  const nodes = client instanceof Cluster ? client.nodes('all') : [client];
  const node = nodes[Math.floor(Math.random() * nodes.length)];
  if (node === undefined) throw new Error('no node of the cluster is known at present');
  return node.duplicate({ ...settings, lazyConnect: true, autoResubscribe: false, retryStrategy: () => null });
}

/**
 * Whether the server of a subscription still belongs to the cluster. One that was taken out of it keeps its connections, and
 * passes nothing on.
 */
export function isMember(client: RedisClient, { options: { host, port } }: Redis): boolean {
  const nodes = client instanceof Cluster ? client.nodes('all') : [];
  return nodes.length === 0 || nodes.some(({ options }) => options.host === host && options.port === port);
}
