/** Rivulet, with the store whose URL is the argument. */
import { createServer } from '../../dist/index.js';
import { agents } from './agents.ts';
import { report } from './tokens.ts';

const app = await createServer({ agents, store: process.argv[2] ?? 'memory:', docs: false });
await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port));
