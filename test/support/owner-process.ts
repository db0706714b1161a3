/** A node that executes the runs of a store: `owner-process.ts URL`. Prints what its agents do. */
import { createServer } from '../../src/index.ts';
import { limits, ownedAgents } from './owner-node.ts';
import { apiOnly } from './serve.ts';

const [store = ''] = process.argv.slice(2);
const agents = ownedAgents((line) => console.log(line));
const app = await createServer({ agents, store, limits, ...apiOnly });
await app.ready();
console.log('ready');
