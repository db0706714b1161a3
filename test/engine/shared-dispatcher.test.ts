import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RunClaims } from '../../src/core/ports/run-claims.ts';
import type { RunRow } from '../../src/core/ports/run-store.ts';
import type { Execute } from '../../src/engine/dispatch/dispatcher.ts';
import { SharedDispatcher } from '../../src/engine/dispatch/shared-dispatcher.ts';
import { fresh } from '../stores/writes.ts';
import { MemoryClaims } from '../support/memory-claims.ts';

const lease = 6_000;

interface Held {
  readonly run_id: string;
  /** The run leaves the process. */
  readonly leave: (how: 'freed' | 'owned') => void;
}

/** The store of several nodes, whose clock stands still unless a test moves it. */
class World {
  now = 0;
  readonly rows = new Map<string, RunRow>();
  readonly claims = new MemoryClaims(
    () => this.rows.values(),
    () => this.now,
  );

  /** Adds runs that wait for a node. Returns their ids, in order. */
  add(count: number, more: Partial<RunRow> = {}): string[] {
    const rows = Array.from({ length: count }, () => ({ ...fresh(), ...more }));
    for (const row of rows) this.rows.set(row.run_id, row);
    return rows.map(({ run_id }) => run_id).sort();
  }

  end(run_id: string): void {
    const row = this.rows.get(run_id);
    if (row === undefined) return;
    const ended = { ...row, status: 'completed' as const };
    this.rows.set(run_id, ended);
    this.claims.onTaken({ row: ended, expect: 0, lines: [] });
  }
}

/** A node, and the runs that it holds. */
class Node {
  readonly held: Held[] = [];
  readonly errors: unknown[] = [];
  readonly dispatcher: SharedDispatcher;
  readonly #world: World;
  #withoutSlot = 0;

  constructor(world: World, { slots = 2, claims = world.claims as RunClaims, agents = [fresh().agent_name] } = {}) {
    this.#world = world;
    const onError = (error: unknown): unknown => this.errors.push(error);
    this.dispatcher = new SharedDispatcher(claims, {
      slots,
      lease,
      requestTimeout: 5_000,
      agents: () => agents,
      onError,
    });
    onTestFinished(() => this.stop());
  }

  /** So many of its runs await. */
  rests(resting: number): void {
    this.#withoutSlot = resting;
    this.dispatcher.onSlotFree();
  }

  async start(): Promise<this> {
    await this.dispatcher.start(
      (run_id) => new Promise((leave) => this.held.push({ run_id, leave })),
      () => this.#withoutSlot,
    );
    await turns();
    return this;
  }

  get runs(): string[] {
    return this.held.map(({ run_id }) => run_id);
  }

  /** A run ends here, and takes no slot any more. */
  async end(run_id: string | undefined): Promise<void> {
    const at = this.runs.indexOf(run_id ?? '');
    this.#world.end(run_id ?? '');
    this.held.splice(at, 1)[0]?.leave('freed');
    await turns();
  }

  async stop(): Promise<void> {
    await this.dispatcher.pause();
    for (const { leave } of this.held) leave('freed');
    await this.dispatcher.close();
  }
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
};

/** Lets time pass for the store and the nodes. */
async function pass(world: World, milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 500) {
    world.now += 500;
    await vi.advanceTimersByTimeAsync(500);
  }
}

describe('a node of a shared store', () => {
  let world: World;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    world = new World();
  });
  const start = (options: ConstructorParameters<typeof Node>[1] = {}): Promise<Node> =>
    new Node(world, options).start();
  /** A run that waits, and that the node has got. */
  const offered = async (node: Node): Promise<string> => {
    const [run_id = ''] = world.add(1);
    node.dispatcher.offer([run_id]);
    await turns();
    return run_id;
  };

  it('keeps a slot for a run that is created here, as long as one is free', async () => {
    const node = await start({ slots: 1 });
    const place = node.dispatcher.reserve();
    expect(node.dispatcher.reserve()).toBeUndefined();
    place?.drop();
    const [run_id = ''] = world.add(1);
    node.dispatcher.reserve()?.begin(run_id);
    expect(node.runs).toEqual([run_id]);
    expect(node.dispatcher.reserve()).toBeUndefined();
  });

  it('gives a slot back once, however often its run is dropped', async () => {
    const node = await start({ slots: 1 });
    const place = node.dispatcher.reserve();
    place?.drop();
    place?.drop();
    expect([node.dispatcher.reserve(), node.dispatcher.reserve()]).toEqual([expect.anything(), undefined]);
  });

  it('takes the oldest runs that wait, and the next one whenever a slot is free', async () => {
    const ids = world.add(5);
    const node = await start();
    expect(node.runs).toEqual(ids.slice(0, 2));
    await node.end(ids[1]);
    expect(node.runs).toEqual([ids[0], ids[2]]);
    await node.end(ids[0]);
    await node.end(ids[2]);
    expect(node.runs).toEqual(ids.slice(3));
  });

  it('keeps no slot for a new run while older ones wait', async () => {
    const ids = world.add(3);
    const node = await start();
    node.rests(1);
    expect(node.dispatcher.reserve()).toBeUndefined();
    await turns();
    expect(node.runs).toEqual(ids);
    await node.end(ids[1]);
    await node.end(ids[2]);
    expect(node.dispatcher.reserve()).toBeDefined();
  });

  it('has more slots while runs await, and none too many when they work again', async () => {
    const ids = world.add(4);
    const node = await start();
    node.rests(1);
    await turns();
    expect(node.runs).toEqual(ids.slice(0, 3));
    node.rests(0);
    await node.end(ids[1]);
    expect(node.runs).toEqual([ids[0], ids[2]]);
    await node.end(ids[0]);
    expect(node.runs).toEqual([ids[2], ids[3]]);
  });

  it('shares what waits with the others: no run is executed twice', async () => {
    const nodes = [new Node(world), new Node(world), new Node(world)];
    const ids = world.add(6);
    await Promise.all(nodes.map((node) => node.start()));
    expect(nodes.flatMap(({ runs }) => runs).sort()).toEqual(ids);
    expect(nodes.map(({ runs }) => runs.length)).toEqual([2, 2, 2]);
  });

  it('leaves runs to others whose agent it does not have', async () => {
    const [unknown = ''] = world.add(1, { agent_name: 'unknown' });
    const [ends = ''] = world.add(1, { agent_name: 'unknown', status: 'cancelling' });
    const node = await start();
    expect(node.runs).toEqual([ends]);
    const other = await start({ agents: ['unknown'] });
    expect(other.runs).toEqual([unknown]);
  });

  it('takes the runs of a node that has died when its lease has ended, and not before', async () => {
    const dead = await start();
    const [run_id = ''] = world.add(1);
    await dead.dispatcher.offer([run_id]);
    const heir = await start();
    vi.spyOn(world.claims, 'renewLease').mockImplementation(async (node, milliseconds) => {
      return node !== dead.dispatcher.node && MemoryClaims.prototype.renewLease.call(world.claims, node, milliseconds);
    });
    await pass(world, lease - 1_000);
    expect(heir.runs).toEqual([]);
    await pass(world, 2_500);
    expect(heir.runs).toEqual([run_id]);
  });

  it('keeps its runs while some renewals fail, for as long as a lease', async () => {
    const node = await start();
    const run_id = await offered(node);
    const other = await start();
    const renew = vi.spyOn(world.claims, 'renewLease');
    for (let round = 0; round < 5; round += 1) {
      for (let failures = 0; failures < 6; failures += 1) renew.mockRejectedValueOnce(new Error('no answer'));
      await pass(world, lease);
    }
    expect([node.runs, other.runs]).toEqual([[run_id], []]);
  });

  it('takes no run while its own lease may have ended', async () => {
    const node = await start();
    const renew = vi.spyOn(world.claims, 'renewLease').mockRejectedValue(new Error('no answer'));
    await pass(world, lease + 1_000);
    expect(node.dispatcher.reserve()).toBeUndefined();
    world.add(1);
    node.dispatcher.onWaiting();
    await turns();
    expect(node.runs).toEqual([]);
    renew.mockRestore();
    await pass(world, 4_000);
    expect(node.runs).toHaveLength(1);
    expect(node.errors).toHaveLength(1);
  });

  it.each(['claimRuns', 'takeRuns'] as const)('begins what %s gave it in an answer that was lost', async (method) => {
    const node = await start();
    const [run_id = ''] = world.add(1);
    const claims = MemoryClaims.prototype;
    if (method === 'claimRuns')
      vi.spyOn(world.claims, method).mockImplementationOnce(async (...args) => {
        await claims.claimRuns.apply(world.claims, args);
        throw new Error('the connection was lost');
      });
    else
      vi.spyOn(world.claims, method).mockImplementationOnce(async (...args) => {
        await claims.takeRuns.apply(world.claims, args);
        throw new Error('the connection was lost');
      });
    if (method === 'claimRuns') node.dispatcher.onWaiting();
    else node.dispatcher.offer([run_id]);
    await turns();
    expect(node.errors).toEqual([new Error('the connection was lost')]);
    expect(node.runs).toEqual([]);
    await pass(world, 2_000);
    expect(node.runs).toEqual([run_id]);
  });

  it.each(['claimRuns', 'takeRuns'] as const)(
    'gives back what %s gave it in an answer that it reads after its lease',
    async (method) => {
      const node = await start();
      const [run_id = ''] = world.add(1);
      // It is paused: no timer has rung when it reads the answer.
      const now = performance.now() + lease;
      const paused = <T>(answer: T): T => {
        vi.spyOn(performance, 'now').mockReturnValue(now);
        return answer;
      };
      const claims = MemoryClaims.prototype;
      vi.spyOn(world.claims, 'claimRuns').mockImplementationOnce(async (...args) =>
        paused(await claims.claimRuns.apply(world.claims, args)),
      );
      vi.spyOn(world.claims, 'takeRuns').mockImplementationOnce(async (...args) =>
        paused(await claims.takeRuns.apply(world.claims, args)),
      );
      if (method === 'claimRuns') node.dispatcher.onWaiting();
      else node.dispatcher.offer([run_id]);
      await turns();
      expect([node.runs, world.claims.nodeOf(run_id)]).toEqual([[], node.dispatcher.node]);
      vi.mocked(performance.now).mockRestore();
      vi.spyOn(world.claims, 'claimRuns').mockResolvedValue([]);
      await pass(world, 2_000);
      expect([node.runs, world.claims.nodeOf(run_id)]).toEqual([[], undefined]);
    },
  );

  it('gives back a run that has left it and still needs an execution', async () => {
    const node = await start();
    const run_id = await offered(node);
    const [first] = node.held.splice(0);
    await node.dispatcher.pause();
    first?.leave('owned');
    await pass(world, 1_500);
    expect(world.claims.nodeOf(run_id)).toBeUndefined();
    const other = await start();
    expect(other.runs).toEqual([run_id]);
  });

  it('looks for the runs of lost answers when a part of the store answers again', async () => {
    const node = await start();
    const [run_id = ''] = world.add(1);
    // Another part has answered, so nothing tells this node that it has the run.
    await world.claims.takeRuns(node.dispatcher.node, [run_id]);
    await pass(world, 2_000);
    expect(node.runs).toEqual([]);
    vi.spyOn(world.claims, 'renewLease').mockImplementationOnce(async (...renewal) => {
      await MemoryClaims.prototype.renewLease.call(world.claims, ...renewal);
      return true;
    });
    await pass(world, 2_000);
    expect(node.runs).toEqual([run_id]);
  });

  it('looks again at a run that was offered while it was held', async () => {
    const node = await start();
    const run_id = await offered(node);
    node.dispatcher.offer([run_id]);
    await turns();
    expect(node.runs).toEqual([run_id]);
    node.held.splice(0)[0]?.leave('freed');
    await turns();
    expect(node.runs).toEqual([run_id]);
    expect(world.claims.nodeOf(run_id)).toBe(node.dispatcher.node);
  });

  it('leaves the runs of others alone when the store is back after all leases have ended', async () => {
    const nodes = [await start(), await start()] as const;
    const run_id = await offered(nodes[0]);
    const renew = vi.spyOn(world.claims, 'renewLease').mockRejectedValue(new Error('no answer'));
    await pass(world, 3 * lease);
    renew.mockRestore();
    // The other one is the first to reach the store again.
    const first = vi.spyOn(world.claims, 'renewLease').mockImplementation(async (node, milliseconds) => {
      if (node === nodes[0].dispatcher.node) throw new Error('no answer');
      return MemoryClaims.prototype.renewLease.call(world.claims, node, milliseconds);
    });
    await pass(world, 1_000);
    first.mockRestore();
    await pass(world, lease);
    expect(nodes.map(({ runs }) => runs)).toEqual([[run_id], []]);
  });

  it('has no more runs than slots, whatever comes while it claims', async () => {
    const node = await start({ slots: 3 });
    const ids = world.add(9);
    node.dispatcher.onWaiting();
    node.dispatcher.offer(ids.slice(3, 6));
    const places = [node.dispatcher.reserve(), node.dispatcher.reserve()];
    await turns();
    expect(node.runs.length + places.filter((place) => place !== undefined).length).toBeLessThanOrEqual(3);
  });

  it('goes on to other runs where the oldest ones leave it at once, again and again', async () => {
    const [damaged = '', next = ''] = world.add(2);
    const node = new Node(world, { slots: 1 });
    const taken: string[] = [];
    const execute: Execute = async (run_id) => {
      taken.push(run_id);
      if (run_id !== damaged) world.end(run_id);
      return run_id === damaged ? 'owned' : 'freed';
    };
    await node.dispatcher.start(execute, () => 0);
    await pass(world, 3_000);
    expect(taken).toContain(next);
    expect(taken.length).toBeLessThan(10);
  });

  it('takes no more runs from its pause on, and leaves what it has got meanwhile to others', async () => {
    const node = await start();
    const [run_id = ''] = world.add(1);
    node.dispatcher.onWaiting();
    await node.dispatcher.pause();
    await turns();
    expect([node.runs, world.claims.nodeOf(run_id)]).toEqual([[], undefined]);
    expect(node.dispatcher.reserve()).toBeUndefined();
    const other = await start();
    expect(other.runs).toEqual([run_id]);
  });

  it('leaves its runs to others at once when it closes', async () => {
    const node = await start();
    const run_id = await offered(node);
    const other = await start();
    // It dies before it could give the run back.
    vi.spyOn(world.claims, 'freeRuns').mockRejectedValue(new Error('no answer'));
    node.held.splice(0)[0]?.leave('owned');
    await node.stop();
    await pass(world, 2_000);
    expect(other.runs).toEqual([run_id]);
  });
});
