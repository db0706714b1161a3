import { AIMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { defineAgent } from 'rivulet';
import { langGraphAgent } from 'rivulet/adapters/langgraph';
import { z } from 'zod';
import { FileSaver } from './_file-saver.js';
import { access, description, model, pay } from './_pay.js';

const payTool = tool(pay, { name: 'pay', description, schema: z.object({ amount: z.number() }) });
const { apiKey, ...configuration } = access;
const chat = new ChatOpenAI({ model, apiKey, configuration, maxRetries: 0 }).bindTools([payTool]);

/** Asks for each call; the reply is true, false, or another input. */
function ask({ messages }) {
  const last = messages.at(-1);
  const replies = last.tool_calls.map(({ args }) => interrupt({ question: 'May the payment be made?', ...args }));
  const denied = last.tool_calls
    .filter((_, index) => replies[index] === false)
    .map(({ id, name }) => new ToolMessage({ tool_call_id: id, name, content: 'denied by a person' }));
  const calls = last.tool_calls.map((call, index) =>
    typeof replies[index] === 'object' ? { ...call, args: replies[index] } : call,
  );
  return { messages: [new AIMessage({ id: last.id, content: last.content, tool_calls: calls }), ...denied] };
}

const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', async ({ messages }) => ({ messages: [await chat.invoke(messages)] }))
  .addNode('ask', ask)
  .addNode('tools', new ToolNode([payTool]))
  .addEdge(START, 'model')
  .addConditionalEdges('model', toolsCondition, { tools: 'ask', [END]: END })
  .addEdge('ask', 'tools')
  .addEdge('tools', 'model')
  .compile({ checkpointer: new FileSaver() });

export default defineAgent({ name: 'langgraph', description }, langGraphAgent(graph), {
  durable: true,
  if_busy: 'enqueue',
});
