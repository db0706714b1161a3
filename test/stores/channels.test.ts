import { describe, expect, it } from 'vitest';
import { Channels } from '../../src/stores/remote/channels.ts';

/** A connection that answers when it is told to, and what it was sent. */
function connection() {
  const sent: [join: readonly string[], leave: readonly string[]][] = [];
  const answers: (() => void)[] = [];
  const send = (join: readonly string[], leave: readonly string[]): Promise<void> => {
    sent.push([join, leave]);
    return new Promise((resolve) => answers.push(resolve));
  };
  const answer = async (): Promise<void> => {
    answers.shift()?.();
    await turns();
  };
  return { sent, send, answer };
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

/** Whether promises have resolved. */
function settled(promises: readonly Promise<void>[]): boolean[] {
  const done = promises.map(() => false);
  promises.forEach((promise, index) => {
    void promise.then(() => {
      done[index] = true;
    });
  });
  return done;
}

describe('the channels of a subscription', () => {
  it('are joined together where they are wanted in one turn, each once', async () => {
    const { sent, send, answer } = connection();
    const channels = new Channels(['all']);
    void channels.connect(send);
    await turns();
    const joins = settled([channels.join('a'), channels.join('b'), channels.join('a')]);
    await answer();
    expect(sent).toEqual([
      [['all'], []],
      [['a', 'b'], []],
    ]);
    expect(joins).toEqual([false, false, false]);
    await answer();
    expect(joins).toEqual([true, true, true]);
    channels.leave('a');
    await turns();
    expect(sent.length).toBe(2);
    channels.leave('a');
    await turns();
    expect(sent[2]).toEqual([[], ['a']]);
  });

  it('are joined again by a new connection, as they are wanted then', async () => {
    const [first, second] = [connection(), connection()];
    const channels = new Channels(['all']);
    void channels.connect(first.send);
    const joins = settled([channels.join('a'), channels.join('b')]);
    channels.leave('b');
    await turns();
    // The first connection is lost before it has answered. A wait for a channel ends when that channel is left.
    expect(joins).toEqual([false, true]);
    void channels.connect(second.send);
    await turns();
    expect(second.sent).toEqual([[['all', 'a'], []]]);
    await second.answer();
    await turns();
    expect(joins).toEqual([true, true]);
  });

  it('are joined where they are left and wanted again, before and after the server has heard of the first', async () => {
    const { sent, send, answer } = connection();
    const channels = new Channels([]);
    void channels.connect(send);
    await turns();
    void channels.join('a');
    await turns();
    await answer();
    channels.leave('a');
    const [atOnce] = [settled([channels.join('a')])];
    await turns();
    expect([sent.length, atOnce]).toEqual([1, [true]]);
    channels.leave('a');
    await turns();
    const late = settled([channels.join('a')]);
    await turns();
    expect([sent.length, late]).toEqual([2, [false]]);
    await answer();
    await answer();
    expect([sent[2], late]).toEqual([[['a'], []], [true]]);
  });
});
