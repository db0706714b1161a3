/**
 * Rivulet, with the store whose URL is the argument; with a second one, keys, limits of each caller, metrics, and log lines
 * in the file that it names.
 */
import { openSync, writeSync } from 'node:fs';
import { keepObjectsYoung } from '../../dist/cli/serving/heap.js';
import { LineBuffer } from '../../dist/cli/terminal/log.js';
import { recordOf } from '../../dist/http/auth/key-records.js';
import { createServer } from '../../dist/index.js';
import { agents } from './agents.ts';
import { key } from './key.ts';
import { report } from './tokens.ts';

/** As `rivulet serve` writes them. */
function linesOf(file: string): LineBuffer {
  const out = openSync(file, 'a');
  return new LineBuffer((bytes) => void writeSync(out, bytes));
}

// As `rivulet serve` does.
keepObjectsYoung();
const [, , store = 'memory:', file] = process.argv;
/** Limits that are counted, and never reached. */
const most = 2 ** 31 - 1;
const limits = { requestsPerMinute: most, runsPerMinute: most, runsPerOwner: most, streamsPerOwner: most };

const operated = (lines: string) => ({
  ...limits,
  auth: { keys: [recordOf(key, { principal: 'bench', scopes: ['runs:read', 'runs:write'] })] },
  metrics: true as const,
  logger: { level: 'info', stream: linesOf(lines) },
});
const app = await createServer({ agents, store, docs: false, ...(file === undefined ? {} : operated(file)) });
await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port));
