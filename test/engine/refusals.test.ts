import { map, merge, NEVER, of, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Write } from '../../src/core/store.ts';
import { Hold } from '../support/hold.ts';
import { nodes } from '../support/nodes.ts';
import { ask, eventsOf, finished, type Served } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

const replyWith = (content: string) => ({
  mode: 'async',
  await_resume: { type: 'message', message: { parts: [{ content }] } },
});

/** Asks beside a step, so that the run stays on its node, and repeats what it is given. */
function asksAtWork(durable: boolean) {
  const said = new Subject<string>();
  const agent = defineAgent(
    { name: 'asks', description: 'Asks once, while it works.' },
    (_, context) => {
      const work = durable ? context.step('work', () => new Promise<string>(() => {})) : said;
      const reply = context.await('Go on?').pipe(map(({ message }) => textOfMessage(message)));
      return merge(work, durable ? said : [], reply);
    },
    { durable },
  );
  return { agent, said };
}

async function awaitingOn(served: Served): Promise<string> {
  const { run_id, status } = await (await served.post('/runs', ask('asks'))).json();
  expect(status).toBe('awaiting');
  return run_id;
}

/** The status of the answer, and what it says: the run's status, or the reason of the error. */
async function give({ app }: Served, run_id: string, text: string): Promise<[number, string]> {
  const response = await app.inject({ method: 'POST', url: `/runs/${run_id}`, payload: replyWith(text) });
  const body = response.json();
  return [response.statusCode, body.status ?? body.data.reason];
}

const taken = [202, 'in-progress'];
const late = [409, 'not_awaiting'];

const hasReply = ({ journal = [] }: Write): boolean => journal.some((line) => line.includes('"reply"'));

async function repliesIn(served: Served, run_id: string): Promise<string[]> {
  const events = await eventsOf(served, run_id);
  return events.flatMap((event) =>
    'run' in event && event.run.await_resume !== undefined ? [textOfMessage(event.run.await_resume.message)] : [],
  );
}

describe('a reply that meets another write of its run', () => {
  it('is taken, where a node takes the run over between its read and its write', async () => {
    const { agent } = asksAtWork(true);
    const { node, queue, store } = nodes([agent]);
    const [a, b] = [await node('a'), await node('b')];
    queue.next = 'b';
    const run_id = await awaitingOn(a);
    const epoch = (await store.run(run_id))?.epoch ?? 0;
    const { commit } = store;
    const hold = new Hold();
    store.commit = async (writes) => {
      if (writes.some(hasReply)) await hold.come();
      return commit.call(store, writes);
    };
    const replies = [give(a, run_id, 'one'), give(a, run_id, 'two')];
    await hold.held();
    await turn();
    queue.next = 'c';
    queue.expireLeases('b');
    await node('c');
    while ((await store.run(run_id))?.epoch === epoch) await turn();
    hold.letGo();
    expect((await Promise.all(replies)).sort()).toEqual([taken, late]);
    expect(await repliesIn(b, run_id)).toHaveLength(1);
  });

  it('is taken, where the node that has it in memory is fenced before it is durable', async () => {
    const { agent } = asksAtWork(true);
    const { node, queue, store } = nodes([agent]);
    const [a, b] = [await node('a'), await node('b')];
    queue.next = 'b';
    const run_id = await awaitingOn(a);
    const epoch = (await store.run(run_id))?.epoch ?? 0;
    const { commit } = store;
    const hold = new Hold();
    store.commit = async (writes) => {
      if (writes.some(hasReply)) await hold.come();
      return commit.call(store, writes);
    };
    const one = give(b, run_id, 'one');
    await hold.held();
    const two = give(b, run_id, 'two');
    queue.next = 'c';
    queue.expireLeases('b');
    await node('c');
    while ((await store.run(run_id))?.epoch === epoch) await turn();
    hold.letGo();
    expect([await one, await two].sort()).toEqual([taken, late]);
    expect(await repliesIn(a, run_id)).toHaveLength(1);
  });

  it.each([true, false])('is taken, where the run says something meanwhile (durable: %s)', async (durable) => {
    const { agent, said } = asksAtWork(durable);
    const { node, queue, store } = nodes([agent]);
    const [a, b] = [await node('a'), await node('b')];
    queue.next = 'b';
    const run_id = await awaitingOn(a);
    const { commit } = store;
    let words = 3;
    store.commit = async (writes) => {
      const isReply = writes.some(({ journal = [] }) => journal.some((line) => line.includes('yes')));
      if (isReply && words > 0) {
        words -= 1;
        const last = (await store.run(run_id))?.last;
        said.next('word ');
        while ((await store.run(run_id))?.last === last) await turn();
      }
      return commit.call(store, writes);
    };
    expect(await give(a, run_id, 'yes')).toEqual(taken);
    expect(words).toBe(0);
    expect(await repliesIn(b, run_id)).toEqual(['yes']);
  });
});

describe('a cancel of a run that has ended in memory', () => {
  it('ends it, where its node is fenced before the end is durable', async () => {
    let lives = 0;
    const agent = defineAgent(
      { name: 'ends', description: 'Ends at once, in its first life.' },
      () => {
        lives += 1;
        return lives === 1 ? of('done') : NEVER;
      },
      { durable: true },
    );
    const { node, queue, store } = nodes([agent]);
    const [a, b] = [await node('a'), await node('b')];
    queue.next = 'b';
    const { commit } = store;
    const hold = new Hold();
    store.commit = async (writes) => {
      if (writes.some(({ row }) => row.status === 'completed')) await hold.come();
      return commit.call(store, writes);
    };
    const { run_id } = await (await a.post('/runs', ask('ends', 'hi', { mode: 'async' }))).json();
    await hold.held();
    const epoch = (await store.run(run_id))?.epoch ?? 0;
    const cancelled = b.app.inject({ method: 'POST', url: `/runs/${run_id}/cancel` });
    queue.next = 'c';
    queue.expireLeases('b');
    await node('c');
    while ((await store.run(run_id))?.epoch === epoch) await turn();
    hold.letGo();
    expect((await cancelled).statusCode).toBe(202);
    expect((await finished(a, run_id)).status).toBe('cancelled');
  });
});
