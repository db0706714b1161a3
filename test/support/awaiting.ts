import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Run } from '../../src/index.ts';
import { RivuletProcess } from './process.ts';
import { textOf } from './run-output.ts';

const root = resolve(import.meta.dirname, '../..');
/** Requests that are made at once. */
const atOnce = 64;
/** Milliseconds after which a response counts as lost; far more than any response takes. */
const bound = 120_000;

// `ask` awaits, and counts its runs that are in memory. `memory` waits until there is none, collects garbage, and
// reports
// the memory that awaiting runs leave behind.
const files = {
  'package.json': '{"type":"module"}',
  'agents/_present.js': `
    import { EventEmitter, once } from 'node:events';
    const changed = new EventEmitter();
    let present = 0;
    export const come = () => { present += 1; };
    export const go = () => { present -= 1; if (present === 0) changed.emit('empty'); };
    export const empty = async () => { while (present > 0) await once(changed, 'empty'); };
  `,
  'agents/ask.js': `
    import { defineAgent } from 'rivulet';
    import { defer, map } from 'rxjs';
    import { come, go } from './_present.js';
    const text = ({ parts }) => parts[0].content;
    export default defineAgent({ name: 'ask', description: 'Awaits an answer.' }, ([input], context) => defer(() => {
      come();
      // Only the signal tells that a run leaves memory.
      context.signal.addEventListener('abort', go);
      return context.await('Well?');
    }).pipe(map(({ message }) => text(input) + ': ' + text(message))), { durable: true });
  `,
  'agents/memory.js': `
    import { setImmediate } from 'node:timers/promises';
    import { setFlagsFromString } from 'node:v8';
    import { runInNewContext } from 'node:vm';
    import { defineAgent } from 'rivulet';
    import { empty } from './_present.js';
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    export default defineAgent({ name: 'memory', description: 'What the process takes.' }, async () => {
      await empty();
      for (let turn = 0; turn < 5; turn += 1) {
        await setImmediate(); // a run that has left the agent leaves the engine with the next commit
        collect();
      }
      return JSON.stringify(process.memoryUsage());
    });
  `,
};

/** The memory of the server's process after a garbage collection, in bytes. `rss` is VmRSS of /proc/PID/status. */
export interface Memory {
  readonly rss: number;
  readonly heapUsed: number;
}

/** A temporary folder with an agent that awaits, for the server's file as well. Returns a function that removes it. */
export function awaitingFolder(): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-awaiting-'));
  mkdirSync(join(folder, 'agents'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/rivulet'));
  symlinkSync(join(root, 'node_modules/rxjs'), join(folder, 'node_modules/rxjs'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}

/** A server process with a SQLite file in a folder; it releases awaiting runs from memory at once. */
export class AwaitingServer {
  readonly #process: RivuletProcess;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  readonly #url: string;
  /** Milliseconds from the start of the process to its greeting. */
  readonly startup: number;

  private constructor(process: RivuletProcess, url: string, startup: number) {
    this.#process = process;
    this.#url = url;
    this.startup = startup;
  }

  static async start(folder: string): Promise<AwaitingServer> {
    const limits = ['passivateAfter=1', 'sweepInterval=100'].flatMap((limit) => ['--limit', limit]);
    const from = performance.now();
    const process = new RivuletProcess(
      ['serve', '--port', '0', '--store', 'sqlite:awaiting.db', ...limits],
      {},
      folder,
    );
    // A process that prints nothing is killed, which ends the wait.
    const late = setTimeout(() => process.child.kill('SIGKILL'), bound);
    const url = await process.url().finally(() => clearTimeout(late));
    return new AwaitingServer(process, url, performance.now() - from);
  }

  /** Creates runs that await, several at once; returns their ids in the order of creation. */
  async make(count: number, made: (run_id: string) => void = () => {}): Promise<string[]> {
    const ids: string[] = [];
    let next = 0;
    const maker = async (): Promise<void> => {
      while (next < count) {
        next += 1;
        const { run_id } = await this.#json<Run>('POST', '/runs', body('ask', 'async'));
        ids.push(run_id);
        made(run_id);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, maker));
    return ids.sort();
  }

  /** Waits until no awaiting run is in memory. */
  async memory(): Promise<Memory> {
    return JSON.parse(textOf(await this.#json<Run>('POST', '/runs', body('memory', 'sync'))));
  }

  /** Replies to an awaiting run and waits for its end; in milliseconds. @throws Error if the run does not complete */
  async answer(run_id: string): Promise<number> {
    const message = { parts: [{ content: `yes, ${run_id}` }] };
    const from = performance.now();
    const run = await this.#json<Run>('POST', `/runs/${run_id}`, {
      mode: 'sync',
      await_resume: { type: 'message', message },
    });
    const took = performance.now() - from;
    if (run.status !== 'completed' || textOf(run) !== `Shall I?: yes, ${run_id}`) {
      throw new Error(`run ${run_id} was answered and is ${JSON.stringify(run)}`);
    }
    return took;
  }

  /** Replies to runs one after the other; in milliseconds each. */
  async answerAll(ids: readonly string[]): Promise<number[]> {
    const times: number[] = [];
    for (const run_id of ids) times.push(await this.answer(run_id));
    return times;
  }

  /** Reads all awaiting runs, page by page; with the milliseconds that each page took. */
  async *awaiting(limit: number): AsyncGenerator<{ ids: string[]; took: number }> {
    for (let cursor = ''; ; ) {
      const from = performance.now();
      const page = await this.#json<{ runs: Run[]; next_cursor?: string }>(
        'GET',
        `/runs?status=awaiting&limit=${limit}${cursor}`,
      );
      yield { ids: page.runs.map(({ run_id }) => run_id), took: performance.now() - from };
      if (page.next_cursor === undefined) return;
      cursor = `&cursor=${page.next_cursor}`;
    }
  }

  /** Stops as a deploy does. Resolves to the exit code. */
  stop(): Promise<number | string | null> {
    return this.#end('SIGTERM');
  }

  /** Kills the process, at the end of a test. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async #end(signal: NodeJS.Signals): Promise<number | string | null> {
    const late = setTimeout(() => this.#process.child.kill('SIGKILL'), bound);
    const code = await this.#process.stop(signal).finally(() => clearTimeout(late));
    this.#agent.destroy();
    return code;
  }

  // node:http, because fetch takes several times as long for what is measured here.
  #json<T>(method: string, path: string, content?: object): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const headers = { 'content-type': 'application/json' };
      const options = { method, headers, agent: this.#agent, timeout: bound };
      const call = request(`${this.#url}${path}`, options, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject);
        response.on('end', () => {
          if ((response.statusCode ?? 0) < 300) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path} answered ${response.statusCode}: ${text}`));
        });
      });
      call.on('error', reject);
      call.on('timeout', () => call.destroy(new Error(`${method} ${path} was not answered in ${bound} ms`)));
      call.end(content === undefined ? undefined : JSON.stringify(content));
    });
  }
}

const body = (agent_name: string, mode: string): object => ({
  agent_name,
  mode,
  input: [{ parts: [{ content: 'Shall I?' }] }],
});

/** The first, the last, and some between; the same ones each time, so that a failure can be repeated. */
export function sampleOf(ids: readonly string[], count: number): string[] {
  const between = ids.slice(1, -1);
  const picked: string[] = [];
  for (let seed = 1; picked.length < count && between.length > 0; seed = (seed * 48_271) % 2_147_483_647) {
    picked.push(...between.splice(seed % between.length, 1));
  }
  return [...ids.slice(0, 1), ...picked, ...ids.slice(-1)];
}
