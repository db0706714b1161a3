import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { isFinal, type Run } from 'rivulet';
import type { Client } from 'rivulet/client';

/** What a person replies where a payment needs an approval. */
export const replies = ['approve', 'deny', 'edit'] as const;
export type Reply = (typeof replies)[number];

export const adapters = ['ai-sdk', 'ai-sdk-function', 'openai-agents', 'langgraph', 'tool-loop'] as const;
export type Adapter = (typeof adapters)[number];

/** Which replies a question of the adapter takes. */
export const takes = (adapter: Adapter, reply: Reply): boolean => reply !== 'edit' || adapter === 'langgraph';

/** By how much another amount is higher. */
const raise = 5;
const pause = 20;
/** Milliseconds after which a call that fails all the time fails the chat. */
const giveUpAfter = 120_000;

/** A chat of three turns: two payments that need an approval, and a greeting. The server may die at any time. */
export class PaidChat {
  readonly adapter: Adapter;
  readonly reply: Reply;
  /** The first amount, a multiple of ten. No other chat has it. */
  readonly amount: number;
  readonly runs: Run[] = [];
  readonly #client: () => Client;
  readonly #session_id = randomUUID();

  constructor(adapter: Adapter, amount: number, reply: Reply, client: () => Client) {
    this.adapter = adapter;
    this.amount = amount;
    this.reply = reply;
    this.#client = client;
  }

  get name(): string {
    return `${this.adapter} ${this.reply} ${this.amount}`;
  }

  amountOf(turn: number): number {
    return this.amount + turn - 1;
  }

  /** The amount that the tool gets; undefined where it must not run. */
  paid(turn: number): number | undefined {
    if (this.reply === 'deny') return undefined;
    return this.amountOf(turn) + (this.reply === 'edit' ? raise : 0);
  }

  async start(turn: number): Promise<string> {
    const text = `${turn < 3 ? 'Pay' : 'Hello'} ${this.amountOf(turn)}`;
    const options = { session_id: this.#session_id, idempotency_key: randomUUID() };
    const { run_id } = await this.#insist(() => this.#client().start(this.adapter, text, options));
    return run_id;
  }

  /** The run when it fulfils the condition. */
  async until(run_id: string, condition: (run: Run) => boolean): Promise<Run> {
    for (;;) {
      const run = await this.#insist(() => this.#client().get(run_id));
      if (condition(run)) return run;
      if (isFinal(run.status)) throw new Error(`${this.name}: ended early: ${JSON.stringify(run)}`);
      await setTimeout(pause);
    }
  }

  /** Replies to the open question, which is answered already if a crash kept the response away. */
  async answer(run_id: string, turn: number): Promise<void> {
    const amount = this.paid(turn);
    const edited = { content_type: 'application/json', content: JSON.stringify({ amount }) };
    await this.#insist(async () => {
      const { status } = await this.#client().get(run_id);
      if (status === 'awaiting')
        await this.#client().resume(run_id, this.reply === 'edit' ? edited : `${this.reply === 'approve'}`);
    });
  }

  /** Follows the run to its end, and answers its questions. */
  async finish(run_id: string, turn: number): Promise<void> {
    for (;;) {
      const run = await this.until(run_id, ({ status }) => status === 'awaiting' || isFinal(status));
      if (isFinal(run.status)) {
        this.runs[turn - 1] = run;
        return;
      }
      await this.answer(run_id, turn);
    }
  }

  /** Turns from one on, to the end of the chat. */
  async play(from = 1): Promise<void> {
    for (let turn = from; turn <= 3; turn += 1) await this.finish(await this.start(turn), turn);
  }

  /** Calls until it succeeds: the server may be down. */
  async #insist<T>(call: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + giveUpAfter;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await setTimeout(pause);
      }
    }
  }
}
