import { setTimeout } from 'node:timers/promises';
import { Dice } from '../../support/dice.ts';
import { faultsOf } from './chat-faults.ts';
import { adapters, PaidChat, replies, takes } from './paid-chat.ts';
import { PayerFolder, PayerNode } from './payer-node.ts';
import { StrictModel } from './strict-model.ts';

export interface DyingNodesOptions {
  /** A store that nodes share. */
  readonly store: string;
  readonly chats: number;
  readonly seed: number;
}

export interface DyingNodesResult {
  readonly kills: number;
  readonly faults: readonly string[];
}

/** Milliseconds for a payment and for a token, which make a turn as long as a node lives. */
const payTime = 2_000;
const pace = 500;
/** Milliseconds until the other node takes over. */
const lease = 1_000;

/** Chats with all adapters at once, on two nodes that are killed in turn until all chats are over. */
export async function dyingNodes({ store, chats: count, seed }: DyingNodesOptions): Promise<DyingNodesResult> {
  const dice = new Dice(seed);
  const model = await StrictModel.open({ pace });
  const folder = new PayerFolder();
  const options = { folder, store, modelUrl: model.url, payTime, limits: [`lease=${lease}`, 'pollInterval=200'] };
  const nodes = [await PayerNode.start(options), await PayerNode.start(options)] as const;
  const chats = Array.from({ length: count }, (_, index) => {
    const adapter = adapters[index % adapters.length] ?? 'ai-sdk';
    const reply = dice.of(...replies);
    return new PaidChat(
      adapter,
      (index + 1) * 10,
      takes(adapter, reply) ? reply : 'approve',
      () => dice.of(...nodes).client,
    );
  });
  let over = false;
  let kills = 0;
  const killing = async (): Promise<void> => {
    while (!over) {
      const node = nodes[kills % 2 === 0 ? 0 : 1];
      await setTimeout(300 + dice.below(1_500));
      await node.kill();
      kills += 1;
      await node.up();
    }
  };
  const killer = killing();
  try {
    const ended = await Promise.allSettled(chats.map((chat) => chat.play()));
    const broken = ended.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
    return { kills, faults: [...broken, ...chats.flatMap((chat) => faultsOf(chat, model, folder, true))] };
  } finally {
    over = true;
    await killer;
    await Promise.all(nodes.map((node) => node.kill()));
    await model.close();
    folder.remove();
  }
}
