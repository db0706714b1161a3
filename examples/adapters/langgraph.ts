import { AIMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { defineAgent } from 'rivulet';
import { langGraphAgent } from 'rivulet/adapters/langgraph';
import { z } from 'zod';

const { OPENAI_BASE_URL: baseURL = 'http://127.0.0.1:11434/v1', OPENAI_API_KEY: apiKey = 'none' } = process.env;
const { OPENAI_MODEL = 'llama3.2' } = process.env;

const sendMail = tool(({ to }) => `Sent to ${to}.`, {
  name: 'sendMail',
  description: 'Sends a mail.',
  schema: z.object({ to: z.string(), text: z.string() }),
});

/**
 * Asks a person about each call, and answers those that are not allowed. A node runs again from its start after each reply, so
 * the questions are in a node without effects.
 */
const ask = ({ messages }: typeof MessagesAnnotation.State) => {
  const last = messages.at(-1);
  const calls = AIMessage.isInstance(last) ? (last.tool_calls ?? []) : [];
  const denied = calls.filter(({ args }) => interrupt(`Shall I send the mail to ${args.to}?`) !== 'yes');
  return {
    messages: denied.map(
      ({ id = '', name }) => new ToolMessage({ tool_call_id: id, name, content: 'It was not sent.' }),
    ),
  };
};

const model = new ChatOpenAI({ model: OPENAI_MODEL, apiKey, configuration: { baseURL } }).bindTools([sendMail]);

const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addNode('ask', ask)
  // It leaves out the calls that have an answer.
  .addNode('tools', new ToolNode([sendMail]))
  .addEdge(START, 'model')
  .addConditionalEdges('model', toolsCondition, { tools: 'ask', [END]: END })
  .addEdge('ask', 'tools')
  .addEdge('tools', 'model')
  // After a restart, this one is empty. One that stores its checkpoints survives a crash, such as PostgresSaver.
  .compile({ checkpointer: new MemorySaver() });

/** A graph of LangGraph. It asks a person before it sends a mail. */
export default defineAgent({ name: 'langgraph', description: 'Writes and sends mails.' }, langGraphAgent(graph), {
  if_busy: 'enqueue',
});
