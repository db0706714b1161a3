import { Chat as ReactChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { expect, it } from 'vitest';
import type { Chat, openChat } from '../ai-sdk/chats.ts';
import { clients as mcpClients } from '../mcp/clients.ts';
import { a2a } from './a2a.ts';
import { agUi } from './ag-ui.ts';
import { aiSdk } from './ai-sdk.ts';
import { mcp } from './mcp.ts';
import { openAi } from './openai.ts';
import { openAiAgents } from './openai-agents.ts';
import { rowOf, writeRow } from './page.ts';
import { cellsOf, type Seen } from './seen.ts';

// The table of docs/clients.md: `npm run docs:clients` writes what these tests see, which otherwise compare it.

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
const both: [name: string, see: () => Promise<Seen>][] = [
  [isNewest ? 'ai 7' : 'ai 6', () => aiSdk('ai')],
  [isNewest ? '@ai-sdk/react 4' : '@ai-sdk/react 3', () => aiSdk('ai', openReact)],
  [isNewest ? 'openai 7, Responses' : 'openai 6, Responses', openAi],
  [`@openai/agents ${isNewest ? '0.20' : '0.14'}, Responses`, () => openAiAgents(true)],
  [`@openai/agents ${isNewest ? '0.20' : '0.14'}, Chat Completions`, () => openAiAgents(false)],
];
const others: typeof both = [
  ['ai 5', () => aiSdk('ai5')],
  ['@ag-ui/client 1', agUi],
  ['@a2a-js/sdk, JSON-RPC', () => a2a('JSONRPC')],
  ['@a2a-js/sdk, REST', () => a2a('HTTP+JSON')],
  ...mcpClients.map(([name, open]): (typeof both)[number] => [name, () => mcp(open)]),
];

it.each(isNewest ? both : [...both, ...others])('%s shows what the page says', async (name, see) => {
  const cells = cellsOf(await see());
  if (process.env.WRITE_DOCS !== undefined) writeRow(name, cells);
  expect(rowOf(name)).toEqual(cells);
});
