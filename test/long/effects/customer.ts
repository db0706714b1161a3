import { randomUUID } from 'node:crypto';
import { isFinal, type Run } from '../../../src/index.ts';
import type { Dice } from '../../support/dice.ts';
import { sleep } from '../soak/measurements.ts';
import { Cut, type Sent, type Wire, type WireResponse } from '../soak/wire.ts';
import { type EffectLedger, now } from './effect-ledger.ts';
import type { Placed, Reply } from './history.ts';
import { type Order, rules } from './orders.ts';

/** Milliseconds without a line of the run after which it does not end. A queued run waits for the run before it. */
const maxEnd = 120_000;

export interface CustomerOptions {
  /** To any node that is up. */
  readonly balancer: Wire;
  /** To each node, also while it is down or paused. */
  readonly nodes: readonly [Wire, ...Wire[]];
  readonly ledger: EffectLedger;
  readonly dice: Dice;
  /**
   * Milliseconds without a line of the run and without a kill after which the run waits in vain: three times as many where
   * two processes were killed in which the run made no progress. Such runs are tried last, a few at a time.
   */
  readonly maxQuiet: number;
  /** Milliseconds for which a node was up that executes runs. */
  upTime(): number;
  /** Called for each run that a server has acknowledged. */
  onPlaced(placed: Placed): void;
}

/** Creates runs, replies to them and cancels some, at random nodes and at moments that the ledger shows. */
export class Customer {
  readonly #options: CustomerOptions;

  constructor(options: CustomerOptions) {
    this.#options = options;
  }

  /** Places orders in a session, and stays until their runs are final. Orders that are placed together take turns. */
  async place(orders: readonly Order[]): Promise<void> {
    const session_id = randomUUID();
    const all: Placed[] = [];
    for (const order of orders) all.push(await this.#create(order, session_id, orders.length > 1));
    await Promise.all(all.map((placed) => this.#follow(placed)));
  }

  async #create(order: Order, session_id: string, enqueue: boolean): Promise<Placed> {
    const input = [{ parts: [{ content: JSON.stringify(order) }] }];
    const body = { agent_name: order.kind, session_id, mode: 'async', input };
    const headers = { 'idempotency-key': order.key, ...(enqueue && { 'if-busy': 'enqueue' }) };
    for (;;) {
      const response = await attempt(this.#options.balancer, '/runs', { body, headers });
      if (response?.status !== 202) {
        await this.#pause();
        continue;
      }
      const { run_id, status }: Run = JSON.parse(response.text);
      const placed: Placed = { order, run_id, session_id, status, replies: [], stuck: [] };
      this.#options.onPlaced(placed);
      return placed;
    }
  }

  async #follow(placed: Placed): Promise<void> {
    const { dice, ledger, upTime } = this.#options;
    const replyAfter = placed.order.reply === 'soon' ? dice.below(800) : Number.POSITIVE_INFINITY;
    let replyAt = Number.POSITIVE_INFINITY;
    let last = { lines: 0, kills: 0, at: upTime(), killAt: upTime() };
    for (;;) {
      const run = await this.#read(placed);
      if (run !== undefined && isFinal(run.status)) return;
      const lines = this.#lineCount(placed);
      const { kills } = ledger;
      if (kills !== last.kills) last = { ...last, kills, killAt: upTime() };
      if (lines !== last.lines) last = { ...last, lines, at: upTime() };
      const quiet = upTime() - Math.max(last.at, last.killAt);
      if (upTime() - last.at > maxEnd) return void placed.stuck.push('end');
      await this.#cancelIfDue(placed);
      if (run?.status === 'awaiting') {
        replyAt = Math.min(replyAt, now() + replyAfter);
        if (this.#isDue(placed, quiet, now() >= replyAt)) await this.#reply(placed);
      }
      await this.#pause();
    }
  }

  async #read(placed: Placed): Promise<Run | undefined> {
    const response = await attempt(this.#options.balancer, `/runs/${placed.run_id}`);
    if (response?.status !== 200) return undefined;
    const run: Run = JSON.parse(response.text);
    placed.status = run.status;
    if (run.error !== undefined) placed.error = JSON.stringify(run.error);
    return run;
  }

  /** The lines of the run, and of the process that wrote the last one. */
  #lineCount({ run_id }: Placed): number {
    const { ledger } = this.#options;
    const lines = ledger.of(run_id);
    return lines.length + ledger.ofNode(lines.at(-1)?.node ?? '').length;
  }

  /** Whether to reply now. A run that waits in vain gets a reply as well, so that it ends. */
  #isDue({ order, replies, stuck, run_id }: Placed, quiet: number, isSoon: boolean): boolean {
    const { ledger, maxQuiet } = this.#options;
    const waits = quiet > (this.#isSuspect(run_id) ? 3 * maxQuiet : maxQuiet);
    if (replies.some(({ outcome }) => outcome === 'accepted')) {
      if (waits) stuck.push('reply');
      return waits;
    }
    if (replies.length > 0 || isSoon) return true;
    const { unasked } = rules[order.kind];
    if (order.reply === 'late' && waits) stuck.push('unasked');
    return waits || ledger.of(run_id).some(({ what, step }) => what === 'end' && step === unasked);
  }

  /** Whether at least two processes with the run were killed since it last ended a step, or with that end. */
  #isSuspect(run_id: string): boolean {
    const { ledger } = this.#options;
    const lines = ledger.of(run_id);
    const lastEnd = lines.findLastIndex(({ what }) => what === 'end');
    const lives = lines.slice(Math.max(0, lastEnd)).map(({ node }) => node);
    return [...new Set(lives)].filter((node) => ledger.ofNode(node).some(({ what }) => what === 'kill')).length > 1;
  }

  /** Sometimes two replies at the same time, of which one is accepted. */
  async #reply(placed: Placed): Promise<void> {
    const twice = this.#options.dice.next() < 0.3;
    await Promise.all((twice ? [0, 1] : [0]).map(() => this.#replyOnce(placed)));
  }

  async #replyOnce({ run_id, replies }: Placed): Promise<void> {
    const { dice, nodes } = this.#options;
    const reply: Reply = { text: `r${replies.length}`, sentAt: now(), outcome: 'unknown' };
    replies.push(reply);
    const message = { parts: [{ content: reply.text }] };
    const body = { mode: dice.of('async', 'stream'), await_resume: { type: 'message', message } };
    try {
      const response = await dice.of(...nodes).open(`/runs/${run_id}`, { body });
      reply.outcome = outcomeOf(response.statusCode);
      response.destroy();
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
    }
  }

  async #cancelIfDue(placed: Placed): Promise<void> {
    const { ledger, dice, nodes } = this.#options;
    const { order, run_id, cancel } = placed;
    if (order.cancel === undefined || (cancel !== undefined && cancel.outcome !== 'unknown')) return;
    const { step: name, after } = order.cancel;
    const begin = ledger.of(run_id).find(({ what, step }) => what === 'begin' && step === name);
    if (begin === undefined || now() < begin.at + after) return;
    const sentAt = now();
    const response = await attempt(dice.of(...nodes), `/runs/${run_id}/cancel`, { method: 'POST' });
    placed.cancel = { sentAt, outcome: outcomeOf(response?.status) };
  }

  #pause(): Promise<void> {
    return sleep(120 + this.#options.dice.below(120));
  }
}

const outcomeOf = (status = 0): Reply['outcome'] =>
  status === 200 || status === 202 ? 'accepted' : status === 409 ? 'refused' : 'unknown';

/** The response; undefined if it was cut, so that the outcome is unknown. */
async function attempt(wire: Wire, path: string, sent?: Sent): Promise<WireResponse | undefined> {
  try {
    return await wire.call(path, sent);
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    return undefined;
  }
}
