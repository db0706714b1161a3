import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, createClient } from 'rivulet/client';
import { steadyPort } from './ports.ts';
import { RivuletProcess } from './process.ts';
import { makeProject, type Project } from './project.ts';

/** Server 1 has the caller, server 2 the agent that calls tools, and server 3 the tool. */
export type Position = 1 | 2 | 3;

/** Calls the agent of server 2 over A2A. */
const caller = (port: number): string => `
import { remoteAgent } from 'rivulet/remote';

export default await remoteAgent('http://127.0.0.1:${port}/a2a/worker', {
  manifest: { name: 'caller', description: 'Asks the worker of another server.' },
  allowNetworks: ['127.0.0.1'],
  durable: true,
  delay: 50,
  retries: 12,
});
`;

/** Told "LABEL COUNT", it calls the tool so often. Told "LABEL COUNT strict", it fails where the outcome is unknown. */
const worker = (port: number): string => `
import { defineAgent, textOf } from 'rivulet';
import { mcpTools } from 'rivulet/remote/mcp';
import { catchError, concat, concatMap, defer, from, of, range, retry, throwError, timer } from 'rxjs';

const tools = mcpTools('http://127.0.0.1:${port}/mcp', { allowNetworks: ['127.0.0.1'], delay: 50, retries: 12 });

export default defineAgent({ name: 'worker', description: 'Calls a tool again and again.' }, (input, context) => {
  const [label, count, strict] = textOf(input).split(' ');
  return range(1, Number(count)).pipe(
    concatMap((n) =>
      concat(
        from(['call ', n + ': ']),
        defer(() => tools.call('write_line', { input: label + ' ' + n }, context)).pipe(
          // A call that was not made is made later.
          retry({ delay: (error) => (error.code === 'tool_unreachable' ? timer(100) : throwError(() => error)) }),
          catchError((error) => {
            if (strict !== undefined || error.code !== 'tool_call_unknown') throw error;
            return of('unknown');
          }),
        ),
        of('; '),
      ),
    ),
  );
}, { durable: true });
`;

/** Writes a line to a file with each call, and ends when there is no file that holds the call back. */
const writer = (durable: boolean): string => `
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { defineAgent, textOf } from 'rivulet';

const tool = { name: 'write_line' };
export default defineAgent({ name: 'writer', description: 'Writes a line.', metadata: { tool } }, async function* (input, context) {
  const text = textOf(input);
  await context.step('write', () => [appendFileSync('lines', text + '\\n') ?? null]);
  yield 'written';
  while (existsSync('hold ' + text)) await setTimeout(5, undefined, { signal: context.signal });
}, { durable: ${durable} });
`;

/** The outcomes of a worker's calls, in their order; undefined where its text has anything else. */
export function outcomesIn(text: string): ('written' | 'unknown')[] | undefined {
  const said = [...text.matchAll(/call (\d+): (written|unknown); /g)];
  const isWhole = said.map(([all]) => all).join('') === text && said.every(([, n], index) => Number(n) === index + 1);
  return isWhole ? said.map(([, , outcome]) => (outcome === 'written' ? 'written' : 'unknown')) : undefined;
}

/** Three servers, each of which calls the next one: over ACP, A2A and MCP. */
export class Chain {
  readonly #servers = new Map<Position, { readonly project: Project; readonly port: number }>();
  readonly #processes = new Map<Position, RivuletProcess>();

  readonly #durable: boolean;

  private constructor(durable: boolean) {
    this.#durable = durable;
  }

  /** The tool of server 3 is durable and keeps its runs, or has none of them when it restarts. */
  static async start({ durable = false } = {}): Promise<Chain> {
    const chain = new Chain(durable);
    const ports = [await steadyPort(), await steadyPort(), await steadyPort()] as const;
    const agents = { 1: caller(ports[1]), 2: worker(ports[2]), 3: writer(durable) };
    for (const at of [1, 2, 3] as const) {
      chain.#servers.set(at, { project: makeProject({ 'agents/agent.js': agents[at] }), port: ports[at - 1] ?? 0 });
    }
    await Promise.all(([1, 2, 3] as const).map((at) => chain.up(at)));
    return chain;
  }

  /** A client of a server, also of one that is down. */
  client(at: Position): Client {
    const url = `http://127.0.0.1:${this.#server(at).port}`;
    return createClient({ url, reconnect: { minDelay: 50, firstRetries: Number.POSITIVE_INFINITY } });
  }

  async up(at: Position): Promise<void> {
    const { port, project } = this.#server(at);
    const store = at === 3 && !this.#durable ? 'memory:' : 'sqlite:./runs.db';
    const args = ['serve', '--port', `${port}`, '--store', store, '--limit', 'attempts=1000'];
    const process = new RivuletProcess(args, {}, project.folder);
    this.#processes.set(at, process);
    await process.url();
  }

  async kill(at: Position): Promise<void> {
    await this.#processes.get(at)?.stop('SIGKILL');
  }

  /** The numbers of the calls that a worker has made under its label, in the order of the calls. */
  calls(label: string): number[] {
    const file = join(this.#server(3).project.folder, 'lines');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    return lines.filter((line) => line.startsWith(`${label} `)).map((line) => Number(line.slice(label.length)));
  }

  /** A call of a worker does not end until it is released. */
  hold(label: string, n: number): void {
    writeFileSync(this.#hold(label, n), '');
  }

  release(label: string, n: number): void {
    rmSync(this.#hold(label, n));
  }

  /** What the processes wrote of errors. */
  get errors(): string {
    return [...this.#processes].map(([at, { err }]) => `${at}: ${err}`).join('\n');
  }

  async stop(): Promise<void> {
    await Promise.all(([1, 2, 3] as const).map((at) => this.kill(at)));
    for (const { project } of this.#servers.values()) project.remove();
  }

  #hold(label: string, n: number): string {
    return join(this.#server(3).project.folder, `hold ${label} ${n}`);
  }

  #server(at: Position): { readonly project: Project; readonly port: number } {
    const server = this.#servers.get(at);
    if (server === undefined) throw new Error(`server ${at} was not made`);
    return server;
  }
}
