import type { CredentialKind } from '../../http/auth/authenticate.ts';
import { extension } from '../../schema/a2a-extension.ts';
import type { AgentManifest } from '../../schema/agent.ts';
import { version } from './negotiation.ts';

/** What cards say of the server. */
export interface CardOptions {
  /** The URL below which the protocol is served, with a slash at its end. */
  readonly url: string;
  readonly credentials: readonly CredentialKind[];
  /** Whether the server sends push notifications. */
  readonly canPush: boolean;
}

/** The path of a card, below the address that it describes. */
export const cardPath = '.well-known/agent-card.json';

/** The card of one agent, at an address of its own in both bindings. */
export function agentCard(manifest: AgentManifest, options: CardOptions): object {
  const { url, credentials } = options;
  const { name, metadata = {}, input_content_types, output_content_types } = manifest;
  const { author, links = [], tool } = metadata;
  const documentation = links.find(({ type }) => type === 'documentation')?.url;
  const home = links.find(({ type }) => type === 'homepage')?.url ?? author?.url;
  const given: unknown = Reflect.get(metadata, 'version');
  const own = `${url}${name}/`;
  return {
    name: tool?.title ?? name,
    description: manifest.description,
    version: typeof given === 'string' ? given : '1.0.0',
    supportedInterfaces: [
      { url: own, protocolBinding: 'JSONRPC', protocolVersion: version },
      { url: own, protocolBinding: 'HTTP+JSON', protocolVersion: version },
    ],
    ...(author !== undefined && { provider: { organization: author.name, url: home ?? own } }),
    documentationUrl: documentation,
    capabilities: capabilities(options),
    ...security(credentials),
    defaultInputModes: modes(input_content_types),
    defaultOutputModes: modes(output_content_types),
    skills: skillsOf(manifest),
  };
}

/**
 * The card of the server: each agent is a skill. It has one address, where a message names its agent; clients that choose an
 * agent first read the agent's own card, whose address is in the extension of agents.
 */
export function serverCard(manifests: readonly AgentManifest[], options: CardOptions): object {
  const { url, credentials } = options;
  const agents = Object.fromEntries(manifests.map(({ name }) => [name, `${url}${name}/${cardPath}`]));
  return {
    name: 'Rivulet',
    description: `Serves ${manifests.length} agent${manifests.length === 1 ? '' : 's'}. A message names its agent as its tenant; each agent has a card of its own as well.`,
    version: '1.0.0',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: version }],
    capabilities: capabilities(options, {
      uri: extension.agents,
      description: 'The address of the card of each agent, by the name of the agent.',
      required: false,
      params: { agents },
    }),
    ...security(credentials),
    defaultInputModes: [...new Set(manifests.flatMap((one) => modes(one.input_content_types)))],
    defaultOutputModes: [...new Set(manifests.flatMap((one) => modes(one.output_content_types)))],
    skills: manifests.map((manifest) => ({ ...agentSkill(manifest), id: manifest.name })),
  };
}

const cursorExtension = {
  uri: extension.cursor,
  description: 'Each frame of a stream has its position. Last-Event-ID with SubscribeToTask goes on exactly after it.',
  required: false,
};

const capabilities = ({ credentials, canPush }: CardOptions, ...extensions: object[]): object => ({
  streaming: true,
  pushNotifications: canPush,
  // Where authentication is off, each caller sees the whole card.
  extendedAgentCard: credentials.length > 0,
  extensions: [cursorExtension, ...extensions],
});

/** How callers authenticate; nothing where they do not. */
function security(credentials: readonly CredentialKind[]): object {
  if (credentials.length === 0) return {};
  const isToken = credentials.every((kind) => kind === 'jwt');
  const schemes = {
    bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', ...(isToken && { bearerFormat: 'JWT' }) } },
    ...(credentials.includes('key') && {
      apiKey: { apiKeySecurityScheme: { location: 'header', name: 'X-API-Key' } },
    }),
  };
  return {
    securitySchemes: schemes,
    // Any one of them is enough.
    securityRequirements: Object.keys(schemes).map((name) => ({ schemes: { [name]: { list: [] } } })),
  };
}

/** The capabilities that the manifest names, or the agent as one skill. */
function skillsOf(manifest: AgentManifest): object[] {
  const { capabilities: named = [] } = manifest.metadata ?? {};
  const whole = agentSkill(manifest);
  if (named.length === 0) return [whole];
  return named.map(({ name, description }, index) => ({
    ...whole,
    id: `${manifest.name}.${index + 1}`,
    name,
    description,
  }));
}

function agentSkill({ name, description, metadata = {}, ...types }: AgentManifest) {
  const { tool, tags = [], domains = [], examples = [] } = metadata;
  return {
    id: tool?.name ?? name,
    name: tool?.title ?? name,
    description,
    tags: [...tags, ...domains],
    ...(examples.length > 0 && {
      examples: examples.map((example) => (typeof example === 'string' ? example : example.prompt)),
    }),
    inputModes: modes(types.input_content_types),
    outputModes: modes(types.output_content_types),
  };
}

/** Text comes first for agents that take anything: clients read the first one as the usual one. */
const modes = (types: readonly string[] = ['*/*']): string[] =>
  types.some((type) => type === '*/*' || type === '*') ? ['text/plain', 'application/json', '*/*'] : [...types];
