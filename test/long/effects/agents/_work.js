import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf } from 'rivulet';

// The underscore keeps this file from being loaded as an agent.
const node = process.env.NODE_MARK;
/** Milliseconds of a clock that all processes of the machine share. */
const now = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
/** Synchronous: what is in the ledger has happened, and a killed process has no line on the way. */
const note = (line) => appendFileSync('ledger.jsonl', `${JSON.stringify({ at: now(), node, ...line })}\n`);

// Shows when the process was paused, or so busy that its leases may have ended.
let turn = now();
setInterval(() => {
  const before = turn;
  turn = now();
  if (turn - before > 400) note({ what: 'stall', from: before });
}, 50).unref();
process.prependListener('SIGTERM', () => note({ what: 'term' }));
process.once('exit', () => note({ what: 'exit' }));

/** The lives of runs in this process. An agent that a run calls belongs to its life. */
const lives = new Map();

/** One life of a run: what its agent does outside is in the ledger. */
export class Work {
  #context;
  #own;

  constructor(input, context, called = false) {
    this.order = JSON.parse(textOf(input));
    this.#context = context;
    const run = context.run_id;
    if (!called) lives.set(run, randomUUID().slice(0, 8));
    this.#own = { run, life: lives.get(run) };
    if (!called) note({ ...this.#own, what: 'enter' });
  }

  get question() {
    return `${this.order.key}?`;
  }

  /** A random value without an effect, as a key of the payment is. */
  draw(name) {
    return this.#context.step(name, async () => randomUUID().slice(0, 8));
  }

  /** A step with an effect that uses these values. Resolves to a random receipt. */
  step(name, values = {}) {
    return this.#context.step(name, () => this.#act(name, values));
  }

  /** What an agent does at its end, or because it cannot go on: outside of steps, as in any `finally`. */
  undo(name) {
    note({ ...this.#own, what: 'undo', step: name });
  }

  /** Plain time between two steps. */
  rest() {
    return sleep(400 + this.#share('rest') * 900);
  }

  async #act(name, values) {
    const ms = Math.round(20 + 1_480 * this.#share(name) ** 2);
    const dies = this.order.dies === name && this.#isFirst(name);
    note({ ...this.#own, what: 'begin', step: name, ms, values, ...(dies && { dies }) });
    // The test kills the process now: nothing that is not committed yet can be committed any more.
    if (dies) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    await sleep(ms);
    note({ ...this.#own, what: 'end', step: name });
    return randomUUID().slice(0, 8);
  }

  /** From 0 to below 1, the same in each life. */
  #share(name) {
    return createHash('sha1').update(`${this.order.key} ${name}`).digest().readUInt32LE() / 2 ** 32;
  }

  #isFirst(name) {
    try {
      openSync(`died-${this.order.key}-${name}`, 'wx');
      return true;
    } catch {
      return false;
    }
  }
}
