/** One of several nodes with one store and default limits: `node URL executes|serves`. Also reports its number of commits. */
import { createServer } from '../../dist/index.js';
import { openStore } from '../../dist/stores/open.js';
import { agents } from './agents.ts';
import { report } from './tokens.ts';

const [, , url = 'memory:', role] = process.argv;
const store = await openStore(url);
const commit = store.commit.bind(store);
let commits = 0;
store.commit = (writes) => {
  commits += 1;
  return commit(writes);
};
const app = await createServer({ agents, store, worker: role !== 'serves', docs: false, playground: false });
await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port), () => ({ commits }));
