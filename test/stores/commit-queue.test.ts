import { describe, expect, it } from 'vitest';
import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import { CommitQueue } from '../../src/stores/remote/commit-queue.ts';
import type { CommitFailure } from '../../src/stores/remote/errors.ts';
import { append, fresh } from './writes.ts';

/** An error of a server, with its class. */
class ServerError extends Error {
  readonly failure: CommitFailure;

  constructor(failure: CommitFailure) {
    super(failure);
    this.failure = failure;
  }
}

const classify = (error: unknown): CommitFailure => (error instanceof ServerError ? error.failure : 'unanswered');

/** A commit queue to a server that answers each commit with the next of these; and the commits that were sent. */
function queueTo(...answers: readonly (CommitFailure | 'taken')[]) {
  const sent: { readonly number: number; readonly runs: string[] }[] = [];
  const send = async (writes: readonly Write[], number: number): Promise<Outcome[]> => {
    const answer = answers[sent.length] ?? 'taken';
    sent.push({ number, runs: writes.map(({ row }) => row.run_id) });
    if (answer !== 'taken') throw new ServerError(answer);
    return writes.map(() => 'taken');
  };
  return { queue: new CommitQueue(send, classify), sent, numbers: () => sent.map(({ number }) => number) };
}

const small = (): Write => append(fresh(), ['1']);
const large = (): Write => append(fresh(), [`"${'x'.repeat(5_000_000)}"`]);

describe('the commit queue', () => {
  it('sends a commit again under the same number when its answer is lost, and delays later commits', async () => {
    const { queue, numbers } = queueTo('unanswered', 'unanswered');
    const commits = [queue.commit([small()]), queue.commit([small(), small()])];
    expect(await Promise.all(commits)).toEqual([['taken'], ['taken', 'taken']]);
    expect(numbers()).toEqual([1, 1, 1, 2]);
  });

  it('fails a commit that the server refuses, and accepts the same commit later', async () => {
    const { queue, numbers } = queueTo('refused', 'too_large');
    const writes = [small()];
    await expect(queue.commit(writes)).rejects.toThrow('refused');
    await expect(queue.commit(writes)).rejects.toThrow('too_large');
    expect(await queue.commit(writes)).toEqual(['taken']);
    expect(numbers()).toEqual([1, 2, 3]);
  });

  it('sends a commit without writes, and fails where the server takes none', async () => {
    const { queue, numbers } = queueTo('refused', 'rejected');
    await expect(queue.commit([])).rejects.toThrow('refused');
    await expect(queue.commit([])).rejects.toThrow('rejected');
    expect(await queue.commit([])).toEqual([]);
    expect(numbers()).toEqual([1, 2, 3]);
  });

  it.for(['refused', 'too_large'] as const)(
    'retries after a lost answer where the server then answers %s',
    async (failure) => {
      const { queue, numbers } = queueTo('unanswered', failure, failure);
      expect(await queue.commit([large()])).toEqual(['taken']);
      expect(numbers()).toEqual([1, 1, 1, 1]);
    },
  );

  it('finds the write that the server rejects, and applies the others', async () => {
    const writes = [small(), small(), small()];
    const { queue, sent } = queueTo('rejected', 'taken', 'rejected', 'taken');
    const outcomes = await queue.commit(writes);
    expect(outcomes).toEqual(['taken', { rejected: new ServerError('rejected') }, 'taken']);
    const ids = writes.map(({ row }) => row.run_id);
    expect(sent).toEqual([
      { number: 1, runs: ids },
      ...ids.map((run_id, index) => ({ number: index + 2, runs: [run_id] })),
    ]);
  });

  it('sends a refused write again when other writes of its commit were applied', async () => {
    const { queue, numbers } = queueTo('rejected', 'taken', 'refused', 'unanswered', 'taken');
    expect(await queue.commit([small(), small()])).toEqual(['taken', 'taken']);
    expect(numbers()).toEqual([1, 2, 3, 3, 3]);
  });

  it('rejects a single large write where its size may be the reason, and continues', async () => {
    const { queue } = queueTo('too_large');
    expect(await queue.commit([large()])).toEqual([{ rejected: new ServerError('too_large') }]);
    expect(await queue.commit([small()])).toEqual(['taken']);
  });

  it('does not retry after it was closed', async () => {
    const { queue, numbers } = queueTo(...Array<CommitFailure>(100).fill('unanswered'));
    const commit = queue.commit([small()]).catch((error: unknown) => error);
    await queue.close();
    expect(await commit).toEqual(new ServerError('unanswered'));
    await expect(queue.commit([small()])).rejects.toThrow('the store is closed');
    expect(numbers().length).toBeLessThan(3);
  });
});
