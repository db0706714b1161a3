import { setTimeout } from 'node:timers/promises';
import { faultsOf } from './chat-faults.ts';
import { adapters, PaidChat, type Reply, takes } from './paid-chat.ts';
import { PayerFolder, PayerNode } from './payer-node.ts';
import { cutsTool, gates, has, type Phase } from './phases.ts';
import { StrictModel } from './strict-model.ts';
import { lineOf } from './told.ts';

/** What became of one adapter in one phase. */
export interface Cell {
  readonly name: string;
  readonly faults: readonly string[];
  /** What the model of the third turn was told. */
  readonly told: string;
}

/** A server with an agent of each adapter, which is killed in a phase of the first turn of a chat with each. */
export class Matrix {
  readonly #model: StrictModel;
  readonly #folder: PayerFolder;
  readonly #node: PayerNode;
  #chats = 0;

  private constructor(model: StrictModel, folder: PayerFolder, node: PayerNode) {
    this.#model = model;
    this.#folder = folder;
    this.#node = node;
  }

  static async open(): Promise<Matrix> {
    const model = await StrictModel.open();
    const folder = new PayerFolder();
    const node = await PayerNode.start({ folder, store: 'sqlite:./runs.db', modelUrl: model.url });
    return new Matrix(model, folder, node);
  }

  /** A chat with each adapter that takes the reply. All are in the phase when the server is killed. */
  async play(phase: Phase, reply: Reply): Promise<Cell[]> {
    const chats = adapters
      .filter((adapter) => takes(adapter, reply) && has(phase, reply))
      .map((adapter) => {
        this.#chats += 1;
        return new PaidChat(adapter, this.#chats * 10, reply, () => this.#node.client);
      });
    const runs = await Promise.all(chats.map((chat) => this.#come(chat, phase)));
    await this.#node.kill();
    for (const chat of chats) this.#folder.release(chat.paid(1) ?? 0);
    await this.#node.up();
    return Promise.all(
      chats.map(async (chat, index): Promise<Cell> => {
        await chat.finish(runs[index] ?? '', 1);
        await chat.play(2);
        return {
          name: `${chat.name}: killed ${phase}`,
          faults: faultsOf(chat, this.#model, this.#folder, cutsTool(phase)),
          told: lineOf(this.#model.told.get(chat.amountOf(3)) ?? []),
        };
      }),
    );
  }

  async close(): Promise<void> {
    await this.#node.kill();
    await this.#model.close();
    this.#folder.remove();
  }

  /** Begins a chat; resolves to its run when it is in the phase. */
  async #come(chat: PaidChat, phase: Phase): Promise<string> {
    const { amount } = chat;
    const gate = gates[phase];
    const held = gate && this.#model.hold(amount, ...gate);
    const paid = chat.paid(1);
    if (phase === 'while the tool runs' && paid !== undefined) this.#folder.hold(paid);
    const run_id = await chat.start(1);
    if (gate?.[0] !== 'call') {
      await chat.until(run_id, ({ status }) => status === 'awaiting');
      if (phase !== 'while the question is open') await chat.answer(run_id, 1);
    }
    const token = await held;
    if (gate?.[1] === 'stream' && token !== undefined)
      await chat.until(run_id, ({ output }) => JSON.stringify(output).includes(token.trim()));
    // What readers have is in the journal.
    if (phase === 'after the tool')
      await chat.until(run_id, ({ output }) => /"tool_(output|error)"/.test(JSON.stringify(output)));
    if (phase === 'while the tool runs' && paid !== undefined)
      while (this.#folder.begun(paid).length === 0) await setTimeout(5);
    return run_id;
  }
}
