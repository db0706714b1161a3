import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Client, createClient } from 'rivulet/client';
import { steadyPort } from '../../support/ports.ts';
import { RivuletProcess } from '../../support/process.ts';

const agents = resolve(import.meta.dirname, 'agents');

/** The folder in which nodes work: the ledger of their payments, and the threads of graphs. */
export class PayerFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'rivulet-payer-'));

  /** The processes that have begun the payment, one for each time. */
  begun(amount: number): number[] {
    const file = join(this.path, 'ledger');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    return lines.filter((line) => line.startsWith(`begin ${amount} `)).map((line) => Number(line.split(' ')[2]));
  }

  /** The payment does not end until it is released. */
  hold(amount: number): void {
    writeFileSync(this.#hold(amount), '');
  }

  release(amount: number): void {
    rmSync(this.#hold(amount), { force: true });
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  #hold(amount: number): string {
    return join(this.path, `hold ${amount}`);
  }
}

export interface PayerNodeOptions {
  readonly folder: PayerFolder;
  readonly store: string;
  readonly modelUrl: string;
  /** Milliseconds that a payment takes. */
  readonly payTime?: number;
  readonly limits?: readonly string[];
}

/** A server with an agent of each adapter, which is killed and started again on its port. */
export class PayerNode {
  readonly client: Client;
  readonly #port: number;
  readonly #options: PayerNodeOptions;
  #process: RivuletProcess | undefined;

  private constructor(port: number, options: PayerNodeOptions) {
    this.#port = port;
    this.#options = options;
    this.client = createClient({ url: `http://127.0.0.1:${port}` });
  }

  static async start(options: PayerNodeOptions): Promise<PayerNode> {
    const node = new PayerNode(await steadyPort(), options);
    await node.up();
    return node;
  }

  async up(): Promise<void> {
    const { folder, store, modelUrl, payTime = 0, limits = [] } = this.#options;
    const all = ['attempts=1000', ...limits].flatMap((limit) => ['--limit', limit]);
    const args = ['serve', agents, '--port', `${this.#port}`, '--store', store, ...all];
    this.#process = new RivuletProcess(args, { OPENAI_BASE_URL: modelUrl, PAY_TIME: `${payTime}` }, folder.path);
    await this.#process.url();
  }

  async kill(): Promise<void> {
    await this.#process?.stop('SIGKILL');
  }

  /** What the process wrote of errors. */
  get errors(): string {
    return this.#process?.err ?? '';
  }
}
