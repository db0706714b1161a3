import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RunClaims } from '../../src/core/ports/run-claims.ts';
import { ClusterClaims } from '../../src/stores/redis/cluster-claims.ts';
import { Parts } from '../../src/stores/redis/parts.ts';

const hanging = <T>(): Promise<T> => new Promise<T>(() => {});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Parts with these answers. */
const answering = (...answers: (() => Promise<number>)[]): Promise<number[]> =>
  new Parts(answers).answered((answer) => answer());

describe('the parts that answer', () => {
  it('are not held up by one that hangs, nor by one that fails', async () => {
    const fails = (): Promise<number> => Promise.reject(new Error('away'));
    const found = answering(
      async () => 1,
      hanging,
      fails,
      async () => 2,
    );
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await found).toEqual([1, 2]);
  });

  it('are waited for, where the first answer is late', async () => {
    const late = (): Promise<number> => new Promise((resolve) => setTimeout(resolve, 10_000, 1));
    const found = answering(() => Promise.reject(new Error('away')), late);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await found).toEqual([1]);
  });

  it('are none, where all fail', async () => {
    await expect(answering(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
  });

  it('do not wait again for one that hangs, until it answers', async () => {
    let hangs = true;
    const parts = new Parts([async () => 0, () => (hangs ? hanging<number>() : Promise.resolve(1))]);
    const ask = (answer: () => Promise<number>): Promise<number> => answer();
    const first = parts.answered(ask);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await first).toEqual([0]);
    expect([parts.answers(0), parts.answers(1)]).toEqual([true, false]);
    expect(await parts.answered(ask)).toEqual([0]);
    hangs = false;
    await parts.answered(ask);
    expect(parts.answers(1)).toBe(true);
    expect(await parts.answered(ask)).toEqual([0, 1]);
  });

  it('give what they have in turn while one hangs', async () => {
    const parts = new Parts([async () => ['a'], () => hanging<string[]>(), async () => ['b']]);
    const claim = (): Promise<string[]> => parts.inTurn(10, (answer) => answer());
    const claimed = claim();
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await claimed).toSorted()).toEqual(['a', 'b']);
    expect((await claim()).toSorted()).toEqual(['a', 'b']);
  });

  it('lack one whose last call is late', async () => {
    const parts = new Parts([async () => 0]);
    const late = parts.ask(0, () => hanging());
    await vi.advanceTimersByTimeAsync(1_000);
    expect(parts.answers(0)).toBe(false);
    void late;
  });
});

/** What a part does while it is asked for claims. */
type State = 'there' | 'fails' | 'hangs';

/** Claims in two parts, of which each has a run. */
function twoParts(): { claims: ClusterClaims; states: [State, State] } {
  const states: [State, State] = ['there', 'there'];
  const partOf = (index: 0 | 1): RunClaims => {
    const answer = async <T>(value: T): Promise<T> => {
      if (states[index] === 'hangs') return hanging<T>();
      if (states[index] === 'fails') throw new Error('away');
      return value;
    };
    return {
      renewLease: () => answer(false),
      endLease: () => answer(undefined),
      claimRuns: () => answer([`claimed-000${index}`]),
      takeRuns: () => answer([`taken-000${index}`]),
      heldRuns: () => answer([`held-000${index}`]),
      freeRuns: () => answer(undefined),
    };
  };
  return { claims: new ClusterClaims(new Parts([{ claims: partOf(0) }, { claims: partOf(1) }])), states };
}

const lease = 6_000;
const claimedBy = async (claims: ClusterClaims): Promise<string[]> =>
  (await claims.claimRuns('node', [], 10)).toSorted((a, b) => (a < b ? -1 : 1));

describe('claims in the parts of a cluster', () => {
  it('are made in the other parts while one hangs, and no lost run of theirs stays unknown', async () => {
    const { claims, states } = twoParts();
    await claims.renewLease('node', lease);
    expect(await claimedBy(claims)).toEqual(['claimed-0000', 'claimed-0001']);
    states[1] = 'hangs';
    const renewed = claims.renewLease('node', lease);
    await vi.advanceTimersByTimeAsync(1_000);
    await renewed;
    expect(await claimedBy(claims)).toEqual(['claimed-0000']);
    const held = claims.heldRuns('node', '', 10);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await held).toEqual(['held-0000']);
  });

  it('are made again at once in a part that was away for less than a lease', async () => {
    const { claims, states } = twoParts();
    await claims.renewLease('node', lease);
    states[1] = 'fails';
    await claims.renewLease('node', lease);
    expect(await claimedBy(claims)).toEqual(['claimed-0000']);
    states[1] = 'there';
    await claims.renewLease('node', lease);
    expect(await claimedBy(claims)).toEqual(['claimed-0000', 'claimed-0001']);
  });

  it('belong to a lease of their own part, which begins anew where it has ended', async () => {
    const { claims, states } = twoParts();
    const since = () => ['run-0000', 'run-0001'].map((run_id) => claims.leasedSince('node', run_id));
    expect(since()).toEqual([undefined, undefined]);
    await claims.renewLease('node', lease);
    const [first, second] = since();
    expect([first, second]).toEqual([expect.any(Number), expect.any(Number)]);
    states[1] = 'fails';
    for (let times = 0; times < 2; times += 1) {
      await vi.advanceTimersByTimeAsync(lease / 2);
      await claims.renewLease('node', lease);
    }
    expect(since()).toEqual([first, undefined]);
    states[1] = 'there';
    await claims.renewLease('node', lease);
    expect(since()).toEqual([first, performance.now()]);
    expect(second).toBeLessThan(performance.now());
  });

  it('wait in a part that was away until the other nodes have renewed their leases, also at a node that starts meanwhile', async () => {
    for (const isNew of [false, true]) {
      const { claims, states } = twoParts();
      if (!isNew) await claims.renewLease('node', lease);
      states[1] = 'fails';
      for (let times = 0; times < 3; times += 1) {
        await claims.renewLease('node', lease);
        await vi.advanceTimersByTimeAsync(lease / 2);
      }
      states[1] = 'there';
      await claims.renewLease('node', lease);
      expect(await claimedBy(claims)).toEqual(['claimed-0000']);
      await vi.advanceTimersByTimeAsync(lease / 3);
      expect(await claimedBy(claims)).toEqual(['claimed-0000', 'claimed-0001']);
    }
  });

  it('may have been lost in a part that left a call without an answer, and now answers again', async () => {
    const { claims, states } = twoParts();
    expect(await claims.renewLease('node', lease)).toBe(false);
    for (const state of ['fails', 'hangs'] as const) {
      states[1] = state;
      const claimed = claimedBy(claims);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(await claimed).toEqual(['claimed-0000']);
      // The part is not asked before it has renewed the lease.
      states[1] = 'there';
      expect(await claimedBy(claims)).toEqual(['claimed-0000']);
      expect(await claims.renewLease('node', lease)).toBe(true);
      expect(await claims.renewLease('node', lease)).toBe(false);
      expect(await claimedBy(claims)).toEqual(['claimed-0000', 'claimed-0001']);
    }
  });
});
