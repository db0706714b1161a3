import { Chat as ReactChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import type { Chat, openChat } from '../ai-sdk/chats.ts';
import { clients as mcpClients } from '../mcp/clients.ts';
import { a2a } from './a2a.ts';
import { agUi } from './ag-ui.ts';
import type { ServeChats } from './agent.ts';
import { aiSdk } from './ai-sdk.ts';
import { mcp } from './mcp.ts';
import { openAi } from './openai.ts';
import { openAiAgents } from './openai-agents.ts';
import type { Seen } from './seen.ts';

const openReact: typeof openChat = (_, { api, id, messages = [], body = {} }) =>
  new ReactChat({
    ...(id !== undefined && { id }),
    messages: structuredClone(messages) as never,
    transport: new DefaultChatTransport({ api, body }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    // One cast: the tests of all versions share their types.
  }) as unknown as Chat;

const isNewest = process.env.NEWEST_CLIENTS !== undefined;

/** The clients of `npm run test:newest` are the same packages in other versions. */
const both: [name: string, see: (serve: ServeChats) => Promise<Seen>][] = [
  [isNewest ? 'ai 7' : 'ai 6', (serve) => aiSdk(serve, 'ai')],
  [isNewest ? '@ai-sdk/react 4' : '@ai-sdk/react 3', (serve) => aiSdk(serve, 'ai', openReact)],
  [isNewest ? 'openai 7, Responses' : 'openai 6, Responses', openAi],
  [`@openai/agents ${isNewest ? '0.20' : '0.14'}, Responses`, (serve) => openAiAgents(serve, true)],
  [`@openai/agents ${isNewest ? '0.20' : '0.14'}, Chat Completions`, (serve) => openAiAgents(serve, false)],
];
const others: typeof both = [
  ['ai 5', (serve) => aiSdk(serve, 'ai5')],
  ['@ag-ui/client 1', agUi],
  ['@a2a-js/sdk, JSON-RPC', (serve) => a2a(serve, 'JSONRPC')],
  ['@a2a-js/sdk, REST', (serve) => a2a(serve, 'HTTP+JSON')],
  ...mcpClients.map(([name, open]): (typeof both)[number] => [name, (serve) => mcp(serve, open)]),
];

/** The official clients, and how each is used. */
export const clients = isNewest ? both : [...both, ...others];
