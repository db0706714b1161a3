import { tool } from '@langchain/core/tools';
import { interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { defineAgent } from 'rivulet';
import { langGraphAgent } from 'rivulet/adapters/langgraph';
import { z } from 'zod';

const { OPENAI_BASE_URL: baseURL = 'http://127.0.0.1:11434/v1', OPENAI_API_KEY: apiKey = 'none' } = process.env;
const { OPENAI_MODEL = 'llama3.2' } = process.env;

const sendMail = tool(
  ({ to }) => {
    const reply = interrupt(`Shall I send the mail to ${to}?`);
    return reply === 'yes' ? `Sent to ${to}.` : 'It was not sent.';
  },
  {
    name: 'sendMail',
    description: 'Sends a mail.',
    schema: z.object({ to: z.string(), text: z.string() }),
  },
);

const model = new ChatOpenAI({ model: OPENAI_MODEL, apiKey, configuration: { baseURL } }).bindTools([sendMail]);

const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addNode('tools', new ToolNode([sendMail]))
  .addEdge(START, 'model')
  .addConditionalEdges('model', toolsCondition)
  .addEdge('tools', 'model')
  // After a restart, this one is empty. One that stores its checkpoints survives a crash, such as PostgresSaver.
  .compile({ checkpointer: new MemorySaver() });

/** A graph of LangGraph. It asks a person before it sends a mail. */
export default defineAgent({ name: 'langgraph', description: 'Writes and sends mails.' }, langGraphAgent(graph), {
  if_busy: 'enqueue',
});
