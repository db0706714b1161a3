import { type Event, type Run, textOf } from 'rivulet';
import { beforeAll, expect, it, type TestContext } from 'vitest';
import { Chain, outcomesIn, type Position } from '../support/chain.ts';

let chain: Chain;
beforeAll(async () => {
  chain = await Chain.start();
  return () => chain.stop();
});

async function durableChain({ onTestFinished }: TestContext): Promise<Chain> {
  const made = await Chain.start({ durable: true });
  onTestFinished(() => made.stop());
  return made;
}

/** A run of server 1, and a client that follows it whatever breaks. */
class Followed {
  readonly run_id: string;
  readonly events: Event[] = [];
  readonly run: Promise<Run>;
  readonly #chain: Chain;

  private constructor(run_id: string, on: Chain) {
    this.run_id = run_id;
    this.#chain = on;
    this.run = this.#follow();
  }

  static async begin(input: string, on = chain): Promise<Followed> {
    const { run_id } = await on.client(1).start('caller', input);
    return new Followed(run_id, on);
  }

  /** The text so far. */
  get text(): string {
    return this.events.map((event) => (event.type === 'message.part' ? (event.part.content ?? '') : '')).join('');
  }

  async #follow(): Promise<Run> {
    let run: Run | undefined;
    for await (const event of this.#chain.client(1).watch(this.run_id, { onFailed: 'end' })) {
      this.events.push(event);
      if ('run' in event) run = event.run;
    }
    if (run === undefined) throw new Error('the stream had no event with the run');
    return run;
  }
}

const restart = async (at: Position, on = chain): Promise<void> => {
  await on.kill(at);
  await on.up(at);
};

/** Kills a server in the middle of a call that is held back. */
async function killDuring(label: string, n: number, at: Position, on = chain): Promise<void> {
  await expect.poll(() => on.calls(label)).toContain(n);
  await restart(at, on);
  on.release(label, n);
}

it('a chain of three servers that are killed calls each tool once, or reports the call as unknown', async () => {
  for (const n of [2, 4, 6, 8]) chain.hold('main', n);
  const followed = await Followed.begin('main 12');
  await expect.poll(() => followed.text).toContain('call 2: ');
  await restart(2);
  chain.release('main', 2);
  await killDuring('main', 4, 2);
  await killDuring('main', 6, 1);
  await killDuring('main', 8, 3);
  await expect.poll(() => followed.text).toContain('call 9: written; ');
  await restart(2);
  const run = await followed.run;
  expect(run.error).toBeUndefined();
  const text = textOf(run.output);
  const outcomes = outcomesIn(text) ?? [];
  expect(outcomes, text).toHaveLength(12);
  // Cut off between servers 2 and 3, between 1 and 2, and by the end of server 3.
  expect([4, 6, 8].map((n) => outcomes[n - 1])).toEqual(['unknown', 'written', 'unknown']);
  const made = chain.calls('main');
  expect(made).toEqual([...new Set(made)]);
  for (const [index, outcome] of outcomes.entries()) if (outcome === 'written') expect(made).toContain(index + 1);
  expect(followed.text).toBe(text);
  const again: Event[] = [];
  for await (const event of chain.client(1).watch(followed.run_id)) again.push(event);
  expect(followed.events).toEqual(again);
  expect((await chain.client(2).runs()).runs).toHaveLength(1);
});

it('a call whose outcome is unknown fails the whole chain, with the code and the message of the tool', async () => {
  chain.hold('strict', 2);
  const followed = await Followed.begin('strict 3 strict');
  await killDuring('strict', 2, 2);
  const { status, error } = await followed.run;
  expect(status).toBe('failed');
  expect(error).toMatchObject({
    message: expect.stringContaining('The call of the tool write_line was cut off by a crash'),
    data: { code: 'tool_call_unknown' },
  });
  expect(followed.text).toBe('call 1: written; call 2: ');
  expect(chain.calls('strict')).toEqual([1, 2]);
});

it('a chain that is cancelled at its beginning is cancelled on all servers', async () => {
  chain.hold('cancelled', 2);
  const followed = await Followed.begin('cancelled 3');
  await expect.poll(() => chain.calls('cancelled')).toContain(2);
  await chain.client(1).cancel(followed.run_id);
  expect((await followed.run).status).toBe('cancelled');
  for (const at of [2, 3] as const) {
    await expect.poll(async () => (await chain.client(at).runs()).runs[0]?.status).toBe('cancelled');
  }
  expect(chain.calls('cancelled')).toEqual([1, 2]);
});

it('a call of a durable tool goes on when the server of the tool is killed', async (t) => {
  const durable = await durableChain(t);
  durable.hold('durable', 2);
  const followed = await Followed.begin('durable 3 strict', durable);
  // Its progress comes after its step: the journal of server 3 has that.
  const written = { generic: { kind: 'progress', message: 'written' } };
  await expect.poll(() => followed.text.endsWith('2: ') && followed.events.at(-1)).toMatchObject(written);
  await killDuring('durable', 2, 3, durable);
  expect((await followed.run).error).toBeUndefined();
  expect(followed.text).toBe('call 1: written; call 2: written; call 3: written; ');
  expect(durable.calls('durable')).toEqual([1, 2, 3]);
});
