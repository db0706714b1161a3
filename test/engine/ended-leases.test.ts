import { expect, it } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import { deferred } from '../support/deferred.ts';
import { deaf, nodes } from '../support/nodes.ts';
import { ask } from '../support/serve.ts';
import { has } from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

/** A durable run on the node `b`, which hears of no other node. Its agent waits between two steps until it
 * is let on; or, with `holds`, the answer to the commit of the first step waits. */
async function runBetweenSteps({ holds = false } = {}) {
  const [waits, goesOn, fenced] = [deferred(), deferred(), deferred()];
  /** The lives of the run that have begun the second step. */
  const begun: number[] = [];
  let lives = 0;
  const pays = defineAgent(
    { name: 'pays', description: 'Looks, and pays.' },
    async (_, context) => {
      lives += 1;
      const life = lives;
      await context.step('look', () => 'all is well');
      if (life === 1 && !holds) {
        waits.resolve();
        await goesOn.promise;
      }
      return context.step('pay', () => {
        begun.push(life);
        return 'paid';
      });
    },
    { durable: true },
  );
  const { node, queue, store } = nodes([pays]);
  const { commit } = store;
  store.commit = async (writes) => {
    const outcomes = await commit.call(store, writes);
    if (outcomes.includes('fenced')) fenced.resolve();
    if (holds && writes.some((write) => has('all is well', write))) {
      waits.resolve();
      await goesOn.promise;
    }
    return outcomes;
  };
  let lease: number | undefined = 0;
  const dispatcher = {
    ...queue.dispatcher('b'),
    get lease() {
      return lease;
    },
  };
  const b = await node('b', { ...deaf(store), dispatcher });
  queue.next = 'b';
  const { run_id } = await (await b.post('/runs', ask('pays', 'go', { mode: 'async' }))).json();
  await waits.promise;
  const endLease = (next?: number): void => {
    lease = next;
  };
  const completed = async (): Promise<void> => {
    while ((await store.run(run_id))?.status !== 'completed') await turn();
  };
  return { begun, goOn: goesOn.resolve, fenced: fenced.promise, node, queue, endLease, completed };
}

it.each([
  ['may have ended', undefined, false],
  ['is a new one', 1, false],
  ['may have ended while a commit was under way', undefined, true],
  ['is a new one since a commit began', 1, true],
])('a node whose lease %s begins no work of a run that another node has taken over', async (_, lease, holds) => {
  const { begun, goOn, fenced, node, queue, endLease, completed } = await runBetweenSteps({ holds });
  endLease(lease);
  queue.next = 'c';
  queue.expireLeases('b');
  await node('c');
  await completed();
  goOn();
  await Promise.race([fenced, expect.poll(() => begun).toHaveLength(2)]);
  await turns(10);
  expect(begun).toEqual([2]);
});

it('a node whose lease has ended goes on with a run that no other node has taken', async () => {
  const { begun, goOn, endLease, completed } = await runBetweenSteps();
  endLease(1);
  goOn();
  await completed();
  expect(begun).toEqual([1]);
});
