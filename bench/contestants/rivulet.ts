/** Rivulet, with the store whose URL is the argument; with a second one, metrics, and log lines in the file that it names. */
import { openSync, writeSync } from 'node:fs';
import { LineBuffer } from '../../dist/cli/line-buffer.js';
import { createServer } from '../../dist/index.js';
import { agents } from './agents.ts';
import { report } from './tokens.ts';

/** As `rivulet serve` writes them. */
function linesOf(file: string): LineBuffer {
  const out = openSync(file, 'a');
  return new LineBuffer((text) => void writeSync(out, text));
}

const [, , store = 'memory:', file] = process.argv;
const observed =
  file === undefined ? {} : ({ metrics: true, logger: { level: 'info', stream: linesOf(file) } } as const);
const app = await createServer({ agents, store, docs: false, ...observed });
await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port));
