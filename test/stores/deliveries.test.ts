import { describe, expect, it } from 'vitest';
import type { Outcome, Write } from '../../src/core/store.ts';
import { Deliveries, type Verdict } from '../../src/stores/remote/deliveries.ts';
import { append, fresh } from './writes.ts';

/** An error of a server, with what it says about a commit. */
class Says extends Error {
  readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    super(verdict);
    this.verdict = verdict;
  }
}

const verdictOf = (error: unknown): Verdict => (error instanceof Says ? error.verdict : 'unanswered');

/** Deliveries to a server that answers each message with the next of these; and what was sent to it. */
function delivering(...answers: readonly (Verdict | 'taken')[]) {
  const sent: { readonly number: number; readonly runs: string[] }[] = [];
  const send = async (writes: readonly Write[], number: number): Promise<Outcome[]> => {
    const answer = answers[sent.length] ?? 'taken';
    sent.push({ number, runs: writes.map(({ row }) => row.run_id) });
    if (answer !== 'taken') throw new Says(answer);
    return writes.map(() => 'taken');
  };
  return { deliveries: new Deliveries(send, verdictOf), sent, numbers: () => sent.map(({ number }) => number) };
}

const small = (): Write => append(fresh(), ['1']);
const large = (): Write => append(fresh(), [`"${'x'.repeat(5_000_000)}"`]);

describe('the delivery of commits', () => {
  it('asks for a lost answer by the number of the commit, and lets later commits wait', async () => {
    const { deliveries, numbers } = delivering('unanswered', 'unanswered');
    const commits = [deliveries.commit([small()]), deliveries.commit([small(), small()])];
    expect(await Promise.all(commits)).toEqual([['taken'], ['taken', 'taken']]);
    expect(numbers()).toEqual([1, 1, 1, 2]);
  });

  it('rejects a commit that the server refuses, and takes the same commit later', async () => {
    const { deliveries, numbers } = delivering('refused', 'too_much');
    const writes = [small()];
    await expect(deliveries.commit(writes)).rejects.toThrow('refused');
    await expect(deliveries.commit(writes)).rejects.toThrow('too_much');
    expect(await deliveries.commit(writes)).toEqual(['taken']);
    expect(numbers()).toEqual([1, 2, 3]);
  });

  it.for(['refused', 'too_much'] as const)(
    'asks on after a lost answer where the server says only that it is %s',
    async (verdict) => {
      const { deliveries, numbers } = delivering('unanswered', verdict, verdict);
      expect(await deliveries.commit([large()])).toEqual(['taken']);
      expect(numbers()).toEqual([1, 1, 1, 1]);
    },
  );

  it('finds the write that the server rejects, and takes the others', async () => {
    const writes = [small(), small(), small()];
    const { deliveries, sent } = delivering('rejected', 'taken', 'rejected', 'taken');
    const outcomes = await deliveries.commit(writes);
    expect(outcomes).toEqual(['taken', { rejected: new Says('rejected') }, 'taken']);
    const ids = writes.map(({ row }) => row.run_id);
    expect(sent).toEqual([
      { number: 1, runs: ids },
      ...ids.map((run_id, index) => ({ number: index + 2, runs: [run_id] })),
    ]);
  });

  it('asks again for each of them that the server refuses, as others are taken already', async () => {
    const { deliveries, numbers } = delivering('rejected', 'taken', 'refused', 'unanswered', 'taken');
    expect(await deliveries.commit([small(), small()])).toEqual(['taken', 'taken']);
    expect(numbers()).toEqual([1, 2, 3, 3, 3]);
  });

  it('rejects a large write alone where its size may be the reason, and goes on', async () => {
    const { deliveries } = delivering('too_much');
    expect(await deliveries.commit([large()])).toEqual([{ rejected: new Says('too_much') }]);
    expect(await deliveries.commit([small()])).toEqual(['taken']);
  });

  it('tries nothing again once it closes', async () => {
    const { deliveries, numbers } = delivering(...Array<Verdict>(100).fill('unanswered'));
    const commit = deliveries.commit([small()]).catch((error: unknown) => error);
    await deliveries.close();
    expect(await commit).toEqual(new Says('unanswered'));
    await expect(deliveries.commit([small()])).rejects.toThrow('the store is closed');
    expect(numbers().length).toBeLessThan(3);
  });
});
