import { useState } from 'preact/hooks';
import type { AgentManifest } from '../../client/client.ts';
import { type ClientTarget, clientsOf } from '../client-code.ts';
import { usePlayground } from '../playground.ts';
import { shownToken } from '../request-log.ts';
import { CodeBlock } from './code-block.tsx';
import { CopyButton } from './copy-button.tsx';

/** The addresses at which the clients of each protocol find an agent, with code to begin with. */
export function AgentClients({ agent: { name, metadata, addresses = [] } }: { agent: AgentManifest }) {
  const { login } = usePlayground();
  const server = addresses.find(({ protocol }) => protocol === 'acp')?.url;
  if (server === undefined) return null;
  const token = login.token === '' ? undefined : shownToken;
  const target = { server, agent: name, tool: metadata?.tool?.name ?? name, token };
  return (
    <section class="clients" aria-labelledby="clients-title">
      <h2 id="clients-title">Connect a client</h2>
      <ul>
        {addresses.map(({ protocol, url }) => (
          <ProtocolClients key={protocol} protocol={protocol} target={{ ...target, url }} />
        ))}
      </ul>
    </section>
  );
}

function ProtocolClients({ protocol, target }: { protocol: string; target: ClientTarget }) {
  const [open, setOpen] = useState(false);
  const { name, code } = clientsOf(protocol);
  return (
    <li>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <strong>{name}</strong> <code>{target.url}</code>
        </summary>
        {/* Only then: the first block of code loads the highlighter. */}
        {open && code.map((one) => <CodeBlock key={one.title} code={one.write(target)} {...one} />)}
      </details>
      <CopyButton label={`Copy the address for ${name}`} text={() => target.url} />
    </li>
  );
}
