import type { Message } from '@ag-ui/client';
import { expect } from 'vitest';
import { ReconnectingAgent } from '../../../examples/ag-ui/reconnecting-agent.ts';
import { askedAnew, type Chats, half, runsOf, type ServeChats, turns } from './agent.ts';
import { listed, type Seen } from './seen.ts';

/** The calls with their results, and how the last answer ends, as the messages have them. */
function shown(messages: readonly Message[]): string {
  const names = new Map<string, string>();
  return listed(
    messages.flatMap((message) => {
      if (message.role === 'assistant') {
        const calls = (message.toolCalls ?? []).map(({ id, function: { name } }) => {
          names.set(id, name);
          return `\`${name}\` called`;
        });
        if (message.content !== half) return calls;
        return [...calls, JSON.stringify(message).includes('"length"') ? 'cut off: length' : 'cut off: not said'];
      }
      if (message.role !== 'tool') return [];
      const failed = message.error !== undefined || JSON.stringify(message.content).includes('refused');
      return [`\`${names.get(message.toolCallId)}\` ${failed ? 'result: its error' : 'result'}`];
    }),
  );
}

export async function agUi(serve: ServeChats): Promise<Seen> {
  const open = ({ url }: Chats): ReconnectingAgent =>
    new ReconnectingAgent({ url: `${url}/ag-ui/chat`, threadId: 'c' });
  const say = (agent: ReconnectingAgent, content: string, runId: string): Promise<unknown> => {
    agent.addMessage({ id: runId, role: 'user', content });
    return agent.runAgent({ runId });
  };
  const begin = async (chats: Chats) => {
    const agent = open(chats);
    const sent = say(agent, turns[0], 'one');
    await chats.working();
    await expect.poll(() => shown(agent.messages)).not.toBe('nothing');
    return { agent, sent };
  };
  const chats = await serve();
  const { agent, sent } = await begin(chats);
  const working = shown(agent.messages);
  chats.release();
  await sent;
  await say(agent, turns[1], 'two');
  const interruptId = agent.pendingInterrupts[0]?.id ?? '';
  await agent.runAgent({ runId: 'three', resume: [{ interruptId, status: 'resolved', payload: true }] });
  await say(agent, turns[2], 'four');
  const loaded = open(chats);
  await loaded.connectAgent({ runId: 'four' });

  const others = await serve();
  const stopped = await begin(others);
  stopped.agent.abortRun();
  await stopped.sent;
  stopped.agent.setMessages(stopped.agent.messages.filter(({ role }) => role === 'user'));
  const anew = stopped.agent.runAgent({ runId: 'five' }).then(
    () => [],
    () => ['an error'],
  );
  await askedAnew(others, anew);
  others.release();
  const error = await anew;
  return {
    working,
    end: shown(agent.messages),
    reload: shown(loaded.messages),
    again: [...error, shown(stopped.agent.messages), await runsOf(others)].join('; '),
  };
}
