/**
 * LangGraph: the server of @langchain/langgraph-api, in memory, with ten runs at most at once as its command line has it,
 * asked by POST /runs/stream for custom events. What its documentation recommends for production is a deployment on its
 * platform or a licensed image, neither of which runs without a connection; of this one only the log is turned down.
 * The argument is a folder for the file that it keeps.
 */
import { fileURLToPath } from 'node:url';

process.env.LOG_LEVEL = 'error';
const { startServer } = await import('@langchain/langgraph-api/server');
const { report } = await import('../tokens.ts');

const { host } = await startServer({
  port: 0,
  host: '127.0.0.1',
  nWorkers: 10,
  cwd: process.argv[2] ?? '.',
  graphs: { tokens: `${fileURLToPath(new URL('langgraph-graph.js', import.meta.url))}:graph` },
});
report(Number(host.split(':').at(-1)));
