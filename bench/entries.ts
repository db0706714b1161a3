/** The contestants. One that does not start is excluded, with the reason. */
import { fileURLToPath } from 'node:url';
import type { Entry } from './contestant.ts';
import { a2a, agui, langgraph, mastra } from './peer-wires.ts';
import { acp, plain } from './wires.ts';

const { REDIS_URL = 'redis://127.0.0.1:6379', DATABASE_URL = 'postgres://postgres@127.0.0.1:5432/test' } = process.env;

/** Databases run on any core, and their CPU time does not count. */
const rivulet = (store: string, url: string): Entry => ({
  id: `rivulet-${store}`,
  name: `Rivulet, ${store}`,
  file: 'rivulet',
  args: [url],
  wire: acp,
});

/** All contestants; `folder` is for their files. */
export const entries = (folder: string): Entry[] => [
  { id: 'bare', name: 'node:http, a write a token', file: 'bare', args: ['token'], wire: plain },
  { id: 'tick', name: 'node:http, a write a tick', file: 'bare', args: ['tick'], wire: plain },
  { id: 'fastify', name: 'Fastify loop by hand', file: 'fastify-loop', wire: plain },
  rivulet('memory', 'memory:'),
  {
    id: 'rivulet-observed',
    name: 'Rivulet, memory, with keys, limits, metrics and logs',
    file: 'rivulet',
    args: ['memory:', `${folder}/rivulet.log`],
    wire: acp,
  },
  rivulet('sqlite', `sqlite:${folder}/bench.db`),
  rivulet('redis', REDIS_URL),
  rivulet('postgres', DATABASE_URL),
  { id: 'ag-ui', name: 'AG-UI encoder on Fastify', file: 'peers/ag-ui', wire: agui },
  { id: 'a2a', name: 'a2a-js', file: 'peers/a2a', wire: a2a },
  {
    id: 'mastra',
    name: 'Mastra',
    file: 'peers/mastra',
    // It needs a newer Node than Rivulet; the npm package `node` provides one.
    node: fileURLToPath(new URL('node_modules/node/bin/node', import.meta.url)),
    wire: mastra,
  },
  { id: 'langgraph', name: 'LangGraph', file: 'peers/langgraph', args: [folder], wire: langgraph, most: 50 },
];
