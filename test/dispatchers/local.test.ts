import { describe, expect, it } from 'vitest';
import { LocalDispatcher } from '../../src/dispatchers/local.ts';

/** A dispatcher whose runs end when the test says so. */
async function local() {
  const dispatcher = new LocalDispatcher();
  const begun: string[] = [];
  const settled: string[] = [];
  const ends = new Map<string, () => void>();
  const start = (): Promise<void> =>
    dispatcher.start(
      (run_id) => {
        begun.push(run_id);
        return new Promise((end) => ends.set(run_id, end));
      },
      async (run_id) => {
        settled.push(run_id);
        if (begun.length === 1) await dispatcher.offer([run_id]);
      },
    );
  return { dispatcher, begun, settled, start, end: (run_id: string) => ends.get(run_id)?.() };
}

describe('a dispatcher within one process', () => {
  it('executes what is offered before the offer returns', async () => {
    const { dispatcher, begun, start, end } = await local();
    await start();
    const offering = dispatcher.offer(['a', 'b']);
    expect(begun).toEqual(['a', 'b']);
    await offering;
    end('a');
    end('b');
    await dispatcher.close();
  });

  it('executes what was offered before the start, once', async () => {
    const { dispatcher, begun, start } = await local();
    await dispatcher.offer(['a']);
    await dispatcher.offer(['a', 'b']);
    expect(begun).toEqual([]);
    await start();
    expect(begun).toEqual(['a', 'b']);
  });

  it('executes a run once at a time, and says when one that was offered again can be', async () => {
    const { dispatcher, begun, settled, start, end } = await local();
    await start();
    await dispatcher.offer(['a', 'a']);
    expect(begun).toEqual(['a']);
    const closing = dispatcher.close();
    end('a');
    await expect.poll(() => begun).toEqual(['a', 'a']);
    end('a');
    await closing;
    expect(settled).toEqual(['a']);
  });

  it('takes no more after the pause, and is closed when all is over', async () => {
    const { dispatcher, begun, start, end } = await local();
    await start();
    await dispatcher.offer(['a']);
    await dispatcher.pause();
    await dispatcher.offer(['b']);
    const order: string[] = [];
    const closing = dispatcher.close().then(() => order.push('closed'));
    order.push('ends');
    end('a');
    await closing;
    expect(order).toEqual(['ends', 'closed']);
    expect(begun).toEqual(['a']);
    await dispatcher.close();
  });
});
