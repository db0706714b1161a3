import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { named } from '../http/plugin-name.ts';
import type { ProtocolAddress, ProtocolOptions } from '../protocols/protocol.ts';

interface Protocol {
  /** Where it is served, unless the options say otherwise. */
  readonly prefix: string;
  /** What its clients are called, and the address that they are given below the prefix. */
  readonly clients: string;
  readonly address: string;
  /** Imported only where it is served: the others cost a start nothing. */
  readonly load: () => Promise<FastifyPluginAsync<ProtocolOptions>>;
  /** Routes whose addresses the protocol fixes, outside of its prefix. */
  readonly loadRoot?: () => Promise<FastifyPluginAsync<ProtocolOptions>>;
}

const protocols = {
  'ai-sdk': {
    clients: 'AI SDK',
    prefix: '/ai',
    address: '/{agent}',
    load: async () => (await import('../protocols/ai-sdk/routes.ts')).aiSdkRoutes,
  },
  'ag-ui': {
    clients: 'AG-UI',
    prefix: '/ag-ui',
    address: '/{agent}',
    load: async () => (await import('../protocols/ag-ui/routes.ts')).agUiRoutes,
  },
  openai: {
    clients: 'OpenAI',
    prefix: '/v1',
    address: '',
    load: async () => (await import('../protocols/openai/routes.ts')).openAiRoutes,
  },
  a2a: {
    clients: 'A2A',
    prefix: '/a2a',
    address: '/{agent}/',
    load: async () => (await import('../protocols/a2a/routes.ts')).a2aRoutes,
    loadRoot: async () => (await import('../protocols/a2a/routes.ts')).serverCardRoutes,
  },
  mcp: {
    clients: 'MCP',
    prefix: '/mcp',
    address: '',
    load: async () => (await import('../protocols/mcp/routes.ts')).mcpRoutes,
  },
  'durable-streams': {
    clients: 'Durable Streams',
    prefix: '',
    address: '/runs/{run_id}/stream',
    load: async () => (await import('../protocols/durable-streams/routes.ts')).durableStreamRoutes,
  },
} satisfies Record<string, Protocol>;

export type ProtocolName = keyof typeof protocols;
const rows: Readonly<Record<ProtocolName, Protocol>> = protocols;

/** Whether a protocol of this name can be served. */
export const isProtocol = (name: string): name is ProtocolName => Object.hasOwn(protocols, name);

/** All protocols beside this server's own, in the order of the documentation. */
export const protocolNames = Object.keys(protocols).filter(isProtocol);

/** Which protocols are served beside the server's own: names, or names with a prefix for each, such as `/chat`. */
export type ServedProtocols = readonly ProtocolName[] | { readonly [name in ProtocolName]?: string };

/** Each protocol that is served, once, with its prefix. @throws Error that names an unknown one, or an odd prefix */
function servedProtocols(served: ServedProtocols = protocolNames): [ProtocolName, string][] {
  const given = isList(served)
    ? [...new Set(served)].map((name): [string, undefined] => [name, undefined])
    : Object.entries(served);
  return given.map(([name, asked]) => {
    if (!isProtocol(name)) throw new Error(`protocols: expected some of ${protocolNames.join(', ')}; got ${name}`);
    const prefix = asked ?? protocols[name].prefix;
    if (!prefixPattern.test(prefix)) {
      throw new Error(
        `protocols.${name}: expected a prefix such as /${name}, without a slash at its end; got ${prefix}`,
      );
    }
    return [name, prefix];
  });
}

/** Cards and greetings append paths to a prefix, and the router reads some characters in a way of its own. */
const prefixPattern = /^(?:\/[\w.~-]+)*$/;

const isList = (served: ServedProtocols): served is readonly ProtocolName[] => Array.isArray(served);

/** The address for the clients of each protocol that is served. */
export const protocolAddresses = (served?: ServedProtocols): ProtocolAddress[] =>
  servedProtocols(served).map(([protocol, prefix]) => {
    const { clients, address } = protocols[protocol];
    return { protocol, clients, path: `${prefix}${address}` };
  });

/** Imports the protocols that are served. */
export const loadProtocols = async (served?: ServedProtocols) =>
  Promise.all(
    servedProtocols(served).map(async ([name, prefix]) => ({
      name,
      routes: await rows[name].load(),
      root: await rows[name].loadRoot?.(),
      prefix,
    })),
  );

/**
 * Serves protocols beside the server's own, each a reader of the same logs.
 * @throws Error that names a prefix at which the same routes would be there twice
 */
export async function serveProtocols(
  app: FastifyInstance,
  served: ServedProtocols | undefined,
  options: Omit<ProtocolOptions, 'prefix'>,
): Promise<void> {
  const registered: { name: string; prefix: string }[] = [{ name: 'this server', prefix: '' }];
  for (const { name, routes, root, prefix } of await loadProtocols(served)) {
    try {
      await app.register(named(routes, name), { ...options, prefix });
    } catch (error) {
      const others = registered.filter((other) => other.prefix === prefix).map((other) => other.name);
      const isShared = error instanceof Error && 'code' in error && error.code === 'FST_ERR_DUPLICATED_ROUTE';
      if (!isShared || others.length === 0) throw error;
      const also = `the prefix "${prefix}" is also that of ${others.join(' and ')}`;
      throw new Error(`protocols.${name}: ${also}, and they have routes in common; give it another one`);
    }
    registered.push({ name, prefix });
    if (root !== undefined) await root(app, { ...options, prefix });
  }
}
