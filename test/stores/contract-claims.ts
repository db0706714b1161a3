import { beforeEach, describe, expect, it } from 'vitest';
import type { RunClaims } from '../../src/core/ports/run-claims.ts';
import type { RunRow, Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { newId } from '../../src/engine/ids.ts';
import { eventually } from '../support/eventually.ts';
import { closedAfterEach } from './auto-close.ts';
import { NotificationRecorder } from './notification-recorder.ts';
import { expectSteady, shortest } from './steady-cost.ts';
import { append, end, fresh, type TestWrite } from './writes.ts';

/** Milliseconds: longer than any test takes. */
const long = 3_600_000;
const short = 200;
const time = '2026-01-01T00:00:00.000Z';

/** Which node has each run of a shared store. */
export function claimsContract(name: string, openStore: () => Promise<Store>): void {
  describe(`the claims of a store in ${name}`, () => {
    const { closeAfter } = closedAfterEach();
    const open = async () => closeAfter(await openStore());
    let store: Store;
    let claims: RunClaims;
    let others: RunClaims;
    /** The only agent of the nodes of a test, so that no test gets the runs of another one. */
    let agent_name: string;

    beforeEach(async () => {
      store = await open();
      claims = claimsOf(store);
      others = claimsOf(await open());
      agent_name = `agent-${newId()}`;
      // Runs of other tests that any node can take.
      const rest = await newNode();
      while ((await claims.claimRuns(rest, [], 1_000)).length > 0);
    });

    const newNode = async (lease = long): Promise<string> => {
      const node = `node-${newId()}`;
      await claims.renewLease(node, lease);
      return node;
    };
    const claim = (node: string, limit = 100): Promise<string[]> => claims.claimRuns(node, [agent_name], limit);
    const untilClaimed = (node: string): Promise<string[]> =>
      eventually(async () => {
        const claimed = await claim(node);
        expect(claimed).not.toEqual([]);
        return claimed;
      });
    const held = (node: string): Promise<string[]> => claims.heldRuns(node, '', 1_000);
    const commit = async (...writes: readonly Write[]): Promise<void> => {
      const outcomes = await store.commit(writes);
      expect(new Set(outcomes)).toEqual(new Set(['taken']));
    };
    /** Creates a run; without a node, it waits for one. */
    const created = async (node?: string, more: Partial<RunRow> = {}): Promise<TestWrite> => {
      const write = append(fresh({ agent_name, ...more }), ['1'], node === undefined ? {} : { node });
      await commit(write);
      return write;
    };
    /** Creates many runs in few commits. Resolves to their ids. */
    const many = async (count: number, more: Partial<RunRow> = {}, node?: string): Promise<string[]> => {
      const writes = Array.from({ length: count }, () =>
        append(fresh({ agent_name, ...more }), ['1'], node === undefined ? {} : { node }),
      );
      for (let n = 0; n < count; n += 500) await commit(...writes.slice(n, n + 500));
      return writes.map(({ row }) => row.run_id);
    };
    /** Creates a run and lets it rest, with its node. */
    const rested = async (node?: string): Promise<TestWrite> => {
      const { row } = await created(node, { tier: 'durable' });
      const write = append({ ...row, status: 'awaiting', rests_at: time }, ['2']);
      await commit(write);
      return write;
    };
    const idsOf = (...writes: readonly TestWrite[]): string[] => writes.map(({ row }) => row.run_id);

    it('give no other node the run of one that renews its lease', async () => {
      const [renewing, dying, claimer] = [await newNode(short), await newNode(short), await newNode()];
      const [kept, left] = [await created(renewing), await created(dying)];
      await claims.renewLease(renewing, long);
      expect(await untilClaimed(claimer)).toEqual(idsOf(left));
      expect(await claim(claimer)).toEqual([]);
      expect(await held(renewing)).toEqual(idsOf(kept));
      expect(await held(claimer)).toEqual(idsOf(left));
    });

    it('give a waiting run to one of several nodes that claim at once', async () => {
      const waiting = await many(200);
      const rounds = Array.from({ length: 4 }, async (_, n) => {
        const node = await newNode();
        const mine: string[] = [];
        for (let claimed = ['']; claimed.length > 0; mine.push(...claimed))
          claimed = await (n % 2 === 0 ? claims : others).claimRuns(node, [agent_name], 7);
        expect(await held(node)).toEqual(mine.toSorted());
        return mine;
      });
      expect((await Promise.all(rounds)).flat().toSorted()).toEqual(waiting);
    });

    it('give the oldest runs first, those that wait and those of dead nodes, and no more than the limit', async () => {
      const [dead, claimer] = [await newNode(), await newNode()];
      const first = await created();
      const second = await created(dead);
      const third = await created(undefined, { status: 'cancelling' });
      const fourth = await created();
      await claims.endLease(dead);
      expect(await claim(claimer, 3)).toEqual(idsOf(first, second, third));
      expect(await claim(claimer, 3)).toEqual(idsOf(fourth));
      expect(await claim(claimer, 3)).toEqual([]);
    });

    it('give the runs of a dead node when its lease has ended, and not before', async () => {
      const claimer = await newNode();
      const began = performance.now();
      const left = await created(await newNode(short));
      expect(await untilClaimed(claimer)).toEqual(idsOf(left));
      // The clock of the store may have whole milliseconds.
      expect(performance.now() - began).toBeGreaterThan(short - 1);
    });

    it('give the runs of a node at once that has ended its lease, and none that it gets after a new lease', async () => {
      const [stopping, claimer] = [await newNode(), await newNode()];
      const left = await created(stopping);
      expect(await claim(claimer)).toEqual([]);
      await others.endLease(stopping);
      expect(await claim(claimer)).toEqual(idsOf(left));
      await claims.renewLease(stopping, long);
      const kept = await created(stopping);
      expect(await claim(claimer)).toEqual([]);
      expect(await held(stopping)).toEqual(idsOf(kept));
    });

    it('leave a node its own runs where its lease has ended', async () => {
      const late = await newNode();
      const run = await created(late);
      await claims.endLease(late);
      expect(await claim(late)).toEqual([]);
      expect(await held(late)).toEqual(idsOf(run));
    });

    it('give a run that goes on only to a node with its agent, and one that can only be ended to any', async () => {
      const [one, other] = [await newNode(), await newNode()];
      const goesOn = [
        await created(),
        await created(undefined, { tier: 'durable', status: 'in-progress' }),
        await created(undefined, { tier: 'durable', status: 'awaiting' }),
      ];
      const endable = [
        await created(undefined, { status: 'in-progress' }),
        await created(undefined, { status: 'cancelling' }),
        await created(undefined, { status: 'cancelling', tier: 'durable' }),
      ];
      expect(await claims.claimRuns(one, ['another agent'], 100)).toEqual(idsOf(...endable));
      expect(await claims.claimRuns(one, ['another agent'], 100)).toEqual([]);
      expect(await claims.claimRuns(other, ['another agent', agent_name], 100)).toEqual(idsOf(...goesOn));
    });

    it('give a run of a dead node that awaits in its memory to any node, which ends the run', async () => {
      const [dead, claimer] = [await newNode(), await newNode()];
      const { row } = await created(dead);
      await commit(append({ ...row, status: 'awaiting' }, ['2']));
      await claims.endLease(dead);
      expect(await claims.claimRuns(claimer, [], 100)).toEqual([row.run_id]);
    });

    it('are not held up by runs whose agent is at no node', async () => {
      const [dead, claimer] = [await newNode(), await newNode()];
      const unknown = { agent_name: `missing-${agent_name}` };
      const waiting = await many(1_200, unknown);
      const left = await many(1_200, unknown, dead);
      const [behind, last] = [await created(), await created(dead)];
      expect(await claim(claimer)).toEqual(idsOf(behind));
      await claims.endLease(dead);
      expect(await untilClaimed(claimer)).toEqual(idsOf(last));
      expect(await claim(claimer)).toEqual([]);
      const found: string[] = [];
      for (let page = ['']; page.length > 0; found.push(...page))
        page = await claims.claimRuns(claimer, [unknown.agent_name], 500);
      expect(found).toEqual([...waiting, ...left]);
    });

    it('leave out runs that are final, rest or are queued, and give those that await: without a node they may have to be ended', async () => {
      const [dead, claimer] = [await newNode(), await newNode()];
      const [waited, worked] = [await created(), await created(dead)];
      await commit(end(waited.row, 'completed'), end(worked.row, 'failed'));
      await commit(append((await rested(dead)).row, [], { node: null }));
      await rested();
      const parked = await created(undefined, { tier: 'durable' });
      await commit(append({ ...parked.row, rests_at: time, parked: 'another journal' }, ['2']));
      const awaiting = append({ ...(await created()).row, status: 'awaiting' }, ['2']);
      await commit(awaiting);
      await created(undefined, { queued_at: time });
      await claims.endLease(dead);
      expect(await claim(claimer)).toEqual(idsOf(awaiting));
      expect(await held(dead)).toEqual([]);
    });

    it('give a run that has rested or was queued, once it has to be executed', async () => {
      const claimer = await newNode();
      const queued = await created(undefined, { queued_at: time });
      const resting = await rested();
      expect(await claim(claimer)).toEqual([]);
      await commit(append({ ...queued.row, queued_at: null }, []), append({ ...resting.row, rests_at: null }, []));
      expect(await claim(claimer)).toEqual(idsOf(queued, resting));
    });

    it('give a run that its node has released in a write', async () => {
      const [one, other] = [await newNode(), await newNode()];
      const run = await created(one, { tier: 'durable' });
      await commit(append({ ...run.row, status: 'in-progress' }, ['2'], { node: null }));
      expect(await held(one)).toEqual([]);
      expect(await claim(other)).toEqual(idsOf(run));
    });

    it('give no run that a write has given to a node', async () => {
      const [one, other, claimer] = [await newNode(), await newNode(), await newNode()];
      const [waiting, run] = [await created(), await created(one)];
      await commit(append(waiting.row, [], { node: other }), append(run.row, [], { node: other }));
      expect(await claim(claimer)).toEqual([]);
      await claims.endLease(one);
      expect(await claim(claimer)).toEqual([]);
      expect(await held(other)).toEqual(idsOf(waiting, run));
    });

    it('leave a run with its node after a write that does not name one, and after a refused write', async () => {
      const [one, other] = [await newNode(), await newNode()];
      const { row } = await created(one, { tier: 'durable' });
      const begun = append({ ...row, epoch: 2, status: 'in-progress' }, ['2'], { from: 1 });
      await commit(begun, append(begun.row, ['3'], { grown: true }));
      const forwarded: Write = { row: begun.row, expect: 3, grown: true, lines: [], journal: ['{}'] };
      await commit(forwarded);
      expect(await store.commit([append(row, ['2'], { node: null }), append(row, [], { node: other })])).toEqual([
        'fenced',
        'fenced',
      ]);
      expect(await held(one)).toEqual([row.run_id]);
      expect(await claim(other)).toEqual([]);
    });

    it('list the runs of a node in order, page by page', async () => {
      const [one, other] = [await newNode(), await newNode()];
      const mine = await many(5, {}, one);
      await many(3, {}, other);
      expect(await claims.heldRuns(one, '', 3)).toEqual(mine.slice(0, 3));
      expect(await claims.heldRuns(one, mine[2] ?? '', 3)).toEqual(mine.slice(3));
    });

    it('let a node take some runs that no other living node has', async () => {
      const [living, dead, claimer] = [await newNode(), await newNode(), await newNode()];
      const waiting = await created();
      const queued = await created(undefined, { queued_at: time });
      const [own, left, foreign, ended] = [
        await created(claimer),
        await created(dead),
        await created(living),
        await created(),
      ];
      await claims.endLease(dead);
      await commit(end(ended.row, 'cancelled'));
      const wanted = [...idsOf(waiting, queued, own, left, foreign, ended), newId()];
      expect((await claims.takeRuns(claimer, wanted)).toSorted()).toEqual(idsOf(waiting, queued, own, left));
      expect(await held(claimer)).toEqual(idsOf(waiting, queued, own, left));
      expect(await held(living)).toEqual(idsOf(foreign));
      expect(await claims.takeRuns(claimer, [])).toEqual([]);
      expect(await claim(await newNode())).toEqual([]);
    });

    it('let one of two nodes take a run', async () => {
      const nodes = [await newNode(), await newNode()];
      for (let round = 0; round < 20; round += 1) {
        const ids = idsOf(await created());
        const taken = await Promise.all(
          [claims, others].map((side, n) => (round % 2 === 0 ? side : claims).takeRuns(nodes[n] ?? '', ids)),
        );
        expect(taken.flat()).toEqual(ids);
      }
    });

    it('let a node free runs that it still has: those that need an execution wait again', async () => {
      const [one, other] = [await newNode(), await newNode()];
      const run = await created(one);
      const resting = await rested(one);
      const foreign = await created(other);
      await claims.freeRuns(one, [...idsOf(run, resting, foreign), newId()]);
      await claims.freeRuns(one, []);
      expect(await held(one)).toEqual([]);
      expect(await held(other)).toEqual(idsOf(foreign));
      expect(await claim(one)).toEqual(idsOf(run));
      expect(await store.run(resting.row.run_id)).toEqual(resting.row);
    });

    it('know nothing of removed runs', async () => {
      const [one, other] = [await newNode(), await newNode()];
      const [waiting, run] = [await created(), await created(one)];
      await commit(end(waiting.row, 'completed'), end(run.row, 'completed'));
      for (const { row } of [waiting, run]) expect(await store.remove(row.run_id)).toBe(true);
      expect(await claims.takeRuns(other, idsOf(waiting, run))).toEqual([]);
      await claims.freeRuns(one, idsOf(waiting, run));
      await claims.endLease(one);
      expect(await claim(other)).toEqual([]);
      expect(await held(one)).toEqual([]);
      expect(await store.run(run.row.run_id)).toBeUndefined();
    });

    it('notify of a run that waits for a node after a write', async () => {
      const node = await newNode();
      const recorder = await NotificationRecorder.of(await open());
      const run = await created();
      await recorder.notified(run.row.run_id, { last: 1, changed: true, waits: true, final: false });
      const begun = append({ ...run.row, tier: 'durable', status: 'in-progress' }, ['2'], { node });
      await commit(begun);
      await recorder.notified(run.row.run_id, { last: 2, changed: true, waits: false });
      const released = append(begun.row, ['3'], { node: null });
      await commit(released);
      await recorder.notified(run.row.run_id, { last: 3, changed: true, waits: true });
      await commit(append({ ...released.row, status: 'awaiting', rests_at: time }, ['4'], { node: null }));
      await recorder.notified(run.row.run_id, { last: 4, changed: true, waits: false });
      const born = await created(node);
      await recorder.notified(born.row.run_id, { last: 1, changed: true, waits: false });
    });

    it('cost the same, however many runs have ended, are at work, or wait for agents that are at no node', async () => {
      const claimed = async (count: number): Promise<number> => {
        const [busy, claimer] = [await newNode(), await newNode()];
        const ended = await many(count);
        for (let n = 0; n < count; n += 500) {
          const part = ended.slice(n, n + 500);
          await commit(...part.map((run_id) => end({ ...fresh({ agent_name, run_id }), last: 1 }, 'completed')));
        }
        await many(count, {}, busy);
        await many(count, { agent_name: `missing-${agent_name}` });
        let waiting: string[] = [];
        const prepare = async (): Promise<void> => {
          waiting = await many(20);
        };
        const work = async (): Promise<void> => {
          await claims.renewLease(claimer, long);
          for (const half of [waiting.slice(0, 10), waiting.slice(10)]) expect(await claim(claimer, 10)).toEqual(half);
          expect(await claim(claimer)).toEqual([]);
          await claims.freeRuns(claimer, waiting);
          expect(await claims.takeRuns(claimer, waiting)).toHaveLength(20);
        };
        return shortest(store, 8, work, prepare);
      };
      await expectSteady(claimed, [50, 5_000]);
    });
  });
}

function claimsOf({ claims }: Store): RunClaims {
  if (claims === undefined) throw new Error('the store has no claims');
  return claims;
}
