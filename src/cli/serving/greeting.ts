import type { Agent } from '../../core/agent.ts';
import { storeName } from '../../stores/open.ts';

interface GreetingOptions {
  readonly store: string;
  readonly docs: boolean;
  readonly playground: boolean;
  /** The addresses of other protocols, such as `AI SDK: /ai/{agent}`. */
  readonly protocols?: readonly string[];
  readonly watch?: boolean;
  /** Whether callers need a key or token. */
  readonly secured?: boolean;
}

/** Agents that are good to begin with: they need no model, and stream. */
const firstAgents = ['demo', 'echo'];

/** The text printed at start-up: the agents, the URLs and a command to try. */
export function greeting(agents: readonly Agent[], urls: readonly string[], options: GreetingOptions): string {
  const { store, docs, playground, protocols = [], watch, secured } = options;
  const [url = '', ...others] = urls;
  const names = agents.map(({ manifest }) => manifest.name);
  const first = firstAgents.find((name) => names.includes(name)) ?? names[0];
  const width = Math.max(...names.map((name) => name.length));
  const lines = agents
    .toSorted((a, b) => Number(b.manifest.name === first) - Number(a.manifest.name === first))
    .map(({ manifest: { name, description } }) => `  ${name.padEnd(width)}  ${description.split('\n', 1)[0]}`);
  const body = `{"agent_name":"${first}","mode":"stream","input":[{"parts":[{"content":"Hello"}]}]}`;
  const token = secured ? ' -H "Authorization: Bearer $RIVULET_TOKEN"' : '';
  const example = `curl -N ${url}/runs${token} -H 'Content-Type: application/json' -d '${body}'`;
  return [
    '',
    `Rivulet is listening at ${url} with ${names.length === 1 ? 'one agent' : `${names.length} agents`}, store ${storeName(store)}`,
    ...others.map((other) => `                    and ${other}`),
    '',
    ...(lines.length > 0 ? lines : ['  No agent yet: "npx rivulet new NAME" writes a first one.']),
    '',
    ...(watch ? ['Agents are reloaded when their files change.'] : []),
    ...(playground ? [`Playground: ${url}/`] : []),
    ...(docs ? [`Documentation: ${url}/docs/guide, API: ${url}/docs`] : []),
    ...(protocols.length > 0 ? [`Other clients: ${protocols.join(', ')}`] : []),
    'Try it:',
    '',
    `  ${first === undefined ? `curl ${url}/agents${token}` : example}`,
    '',
  ].join('\n');
}

export const noAuthentication =
  'Warning: the server has no authentication. Every computer that reaches these addresses can run its agents and read its ' +
  'runs. Put a proxy that authenticates in front, or give --keys: docs/authentication.md.';
