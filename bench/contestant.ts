/** A contestant: a server process on a core of its own, which tells what CPU time and memory it has used. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Entry {
  readonly name: string;
  /** File in `contestants/`, and its arguments. */
  readonly file: string;
  readonly args: readonly string[];
  /** The request for a stream of tokens, so many milliseconds apart. */
  request(tokens: number, every: number): string;
}

export interface Usage {
  /** CPU time since it began to listen, in microseconds. */
  readonly cpu: number;
  /** Resident memory, in bytes. */
  readonly memory: number;
}

export class Contestant {
  readonly entry: Entry;
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(entry: Entry, child: ChildProcess, port: number) {
    this.entry = entry;
    this.#child = child;
    this.port = port;
  }

  /** Starts it on core 0; the load has core 1. */
  static async start(entry: Entry): Promise<Contestant> {
    const file = fileURLToPath(new URL(`contestants/${entry.file}`, import.meta.url));
    const child = spawn('taskset', ['-c', '0', process.execPath, '--import', 'tsx', file, ...entry.args], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    let out = '';
    for await (const chunk of child.stdout?.setEncoding('utf8') ?? []) {
      out += chunk;
      const port = /listening (\d+)/.exec(out)?.[1];
      if (port !== undefined) return new Contestant(entry, child, Number(port));
    }
    throw new Error(`${entry.name} did not come up: ${out}`);
  }

  async usage(): Promise<Usage> {
    this.#child.send('usage');
    const [message] = await once(this.#child, 'message');
    return message;
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}

const get = (tokens: number, every: number): string =>
  `GET /${tokens}/${every} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;

function post(tokens: number, every: number): string {
  const content = `${tokens}/${every}`;
  const body = JSON.stringify({ agent_name: 'tokens', mode: 'stream', input: [{ parts: [{ content }] }] });
  const head = 'POST /runs HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json';
  return `${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** All contestants; `folder` is for those that keep files. */
export const entries = (folder: string): Entry[] => [
  { name: 'node:http, a write a token', file: 'bare.ts', args: ['token'], request: get },
  { name: 'node:http, a write a tick', file: 'bare.ts', args: ['tick'], request: get },
  { name: 'Fastify loop by hand', file: 'fastify-loop.ts', args: [], request: get },
  { name: 'Rivulet memory', file: 'rivulet.ts', args: ['memory:'], request: post },
  { name: 'Rivulet sqlite', file: 'rivulet.ts', args: [`sqlite:${folder}/bench.db`], request: post },
];
