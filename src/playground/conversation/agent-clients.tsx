import type { AgentManifest } from '../../client/client.ts';
import { shownToken } from '../app/connection.ts';
import { usePlayground } from '../app/playground.ts';
import { CopyButton, Fold } from '../elements/controls.tsx';
import { toCurl } from '../inspector/request-code.ts';
import { CodeBlock } from './code-block.tsx';

/** The addresses at which the clients of each protocol find an agent, with code to begin with. */
export function AgentClients({ agent: { name, metadata, addresses = [] } }: { agent: AgentManifest }) {
  const { login } = usePlayground();
  const server = addresses.find(({ protocol }) => protocol === 'acp')?.url;
  if (server === undefined) return null;
  const token = login.token === '' ? undefined : shownToken;
  const target = { server, agent: name, tool: metadata?.tool?.name ?? name, token };
  return (
    <section class="clients stack" aria-labelledby="clients-title">
      <h2 id="clients-title">Connect a client</h2>
      <ul class="calls lines">
        {addresses.map(({ protocol, url }) => (
          <ProtocolClients key={protocol} protocol={protocol} target={{ ...target, url }} />
        ))}
      </ul>
    </section>
  );
}

function ProtocolClients({ protocol, target }: { protocol: string; target: ClientTarget }) {
  const { name, code } = clientsOf(protocol);
  return (
    <li>
      {/* Opened, because the first block of code loads the highlighter. */}
      <Fold
        summary={
          <>
            <strong>{name}</strong> <code class="note">{target.url}</code>{' '}
          </>
        }
      >
        {code.map((one) => (
          <CodeBlock key={one.title} code={one.write(target)} {...one} />
        ))}
      </Fold>
      <CopyButton label={`Copy the address for ${name}`} text={() => target.url} />
    </li>
  );
}

/** An agent, as the clients of a protocol find it. */
export interface ClientTarget {
  /** The URL of the server. */
  readonly server: string;
  /** The address of the agent in the protocol; `{run_id}` in it stands for a run. */
  readonly url: string;
  readonly agent: string;
  /** The name of the agent where it is a tool. */
  readonly tool: string;
  /** For the code of a caller that has to show one; undefined where the server wants none. */
  readonly token?: string | undefined;
}

/** Code that sends an agent a first message, or the configuration of a client. */
export interface ClientCode {
  readonly title: string;
  /** As the highlighter knows it. */
  readonly language: 'bash' | 'ts' | 'tsx' | 'python' | 'json';
  readonly write: (target: ClientTarget) => string;
}

interface ProtocolClients {
  readonly name: string;
  readonly code: readonly ClientCode[];
}

const message = 'Hello';
const quoted = (text: string): string => JSON.stringify(text);

/** The header that shows a token; undefined without one. */
const authorization = (token: string | undefined) =>
  token === undefined ? undefined : { Authorization: `Bearer ${token}` };

/** An object as TypeScript writes it, without undefined values. */
const literal = (value: object): string =>
  JSON.stringify(value, null, 1)
    .replace(/\n\s*/g, ' ')
    .replace(/"(\w+)": /g, '$1: ');

/** Code with the header that shows a token; none without a token. */
const withToken = (token: string | undefined, write: (header: string) => string): string =>
  token === undefined ? '' : write(literal({ Authorization: `Bearer ${token}` }));

const curl: ClientCode = {
  title: 'curl',
  language: 'bash',
  write: ({ server, agent, token }) =>
    toCurl({
      method: 'POST',
      url: `${server}/runs`,
      headers: [
        ['accept', 'text/event-stream'],
        ['content-type', 'application/json'],
        ...Object.entries(authorization(token) ?? {}),
      ],
      body: JSON.stringify({ agent_name: agent, mode: 'stream', input: [{ parts: [{ content: message }] }] }),
    }),
};

const rivulet: ClientCode = {
  title: 'TypeScript, rivulet/client',
  language: 'ts',
  write: ({ server, agent, token }) => `import { createClient, text } from "rivulet/client";

const client = createClient(${literal({ url: server, token })});
client
  .run(${quoted(agent)}, ${quoted(message)})
  .pipe(text())
  .subscribe((answer) => console.log(answer));
`,
};

const useChat: ClientCode = {
  title: 'React, useChat',
  language: 'tsx',
  write: ({ url, token }) => `import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { resumingFetch } from "rivulet/client/ai-sdk";

const transport = new DefaultChatTransport({ api: ${quoted(url)}, ${withToken(token, (header) => `headers: ${header}, `)}fetch: resumingFetch() });

export function Chat() {
  const { messages, sendMessage } = useChat({ transport });
  return (
    <main>
      {messages.map(({ id, parts }) => (
        <p key={id}>{parts.map((part) => (part.type === "text" ? part.text : ""))}</p>
      ))}
      <button type="button" onClick={() => sendMessage({ text: ${quoted(message)} })}>
        Send
      </button>
    </main>
  );
}
`,
};

const httpAgent: ClientCode = {
  title: 'TypeScript, HttpAgent',
  language: 'ts',
  write: ({ url, token }) => `import { HttpAgent } from "@ag-ui/client";

const agent = new HttpAgent(${literal({ url, headers: authorization(token) })});
agent.addMessage({ id: crypto.randomUUID(), role: "user", content: ${quoted(message)} });
const { newMessages } = await agent.runAgent();
console.log(newMessages);
`,
};

const openAi: ClientCode = {
  title: 'TypeScript, openai',
  language: 'ts',
  write: ({ url, agent, token = 'none' }) => `import OpenAI from "openai";

const client = new OpenAI(${literal({ baseURL: url, apiKey: token })});
const stream = client.responses.stream({ model: ${quoted(agent)}, input: ${quoted(message)} });
stream.on("response.output_text.delta", ({ delta }) => console.log(delta));
await stream.finalResponse();
`,
};

const openAiPython: ClientCode = {
  title: 'Python, openai',
  language: 'python',
  write: ({ url, agent, token = 'none' }) => `from openai import OpenAI

client = OpenAI(base_url=${quoted(url)}, api_key=${quoted(token)})
stream = client.responses.create(model=${quoted(agent)}, input=${quoted(message)}, stream=True)
for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
`,
};

const durableStreams: ClientCode = {
  title: 'TypeScript, @durable-streams/client',
  language: 'ts',
  write: ({ server, url, agent, token }) => `import { stream } from "@durable-streams/client";
import { createClient } from "rivulet/client";

const client = createClient(${literal({ url: server, token })});
const { run_id } = await client.start(${quoted(agent)}, ${quoted(message)});
const url = ${quoted(url)}.replace("{run_id}", run_id);
const response = await stream({ url, ${withToken(token, (header) => `headers: ${header}, `)}live: "sse" });
for await (const event of response.jsonStream()) console.log(event);
`,
};

const a2a: ClientCode = {
  title: 'TypeScript, @a2a-js/sdk',
  language: 'ts',
  write: ({ url, token }) => `import { SendMessageRequest } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";

const client = await new ClientFactory().createFromUrl(${quoted(url)});
const request = SendMessageRequest.fromJSON({
  message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: ${quoted(message)} }] },
});
const updates = client.sendMessageStream(request${withToken(token, (header) => `, { serviceParameters: ${header} }`)});
for await (const { payload } of updates) console.log(payload);
`,
};

const mcpConfiguration: ClientCode = {
  title: 'The configuration of an MCP client',
  language: 'json',
  write: ({ url, token }) => {
    const rivulet = { type: 'http', url, headers: authorization(token) };
    return `${JSON.stringify({ mcpServers: { rivulet } }, undefined, 2)}\n`;
  },
};

const mcp: ClientCode = {
  title: 'TypeScript, @modelcontextprotocol/client',
  language: 'ts',
  write: ({
    url,
    tool,
    token,
  }) => `import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client({ name: "my-client", version: "1.0.0" });
const url = new URL(${quoted(url)});
const transport = new StreamableHTTPClientTransport(url${withToken(token, (header) => `, { requestInit: { headers: ${header} } }`)});
await client.connect(transport);
const { content } = await client.callTool(${literal({ name: tool, arguments: { input: message } })});
console.log(content);
await client.close();
`,
};

const clients: ReadonlyMap<string, ProtocolClients> = new Map(
  Object.entries({
    acp: { name: 'ACP', code: [curl, rivulet] },
    'ai-sdk': { name: 'AI SDK', code: [useChat] },
    'ag-ui': { name: 'AG-UI', code: [httpAgent] },
    openai: { name: 'OpenAI', code: [openAi, openAiPython] },
    'durable-streams': { name: 'Durable Streams', code: [durableStreams] },
    a2a: { name: 'A2A', code: [a2a] },
    mcp: { name: 'MCP', code: [mcpConfiguration, mcp] },
  }),
);

/** The clients of a protocol. A newer server may have one that this page does not know. */
export const clientsOf = (protocol: string): ProtocolClients => clients.get(protocol) ?? { name: protocol, code: [] };
