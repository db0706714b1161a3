import { expect, it } from 'vitest';
import { never } from '../support/agents.ts';
import { ask, framesUntil, type Served } from '../support/serve.ts';

const shortGrace = 0.1;
const sse = { accept: 'text/event-stream' };

/** A stream of a new run, which has begun. */
async function begun(node: Served, seconds: number) {
  const grace = { 'on-disconnect': `grace=${seconds}` };
  const response = await node.post('/runs', ask('never', 'x', { mode: 'stream' }), grace);
  const run_id = response.headers.get('run-id') ?? '';
  const reader = await read(node, run_id);
  // The first frames end this connection; the other one stays.
  await framesUntil(response, ({ event }) => event.type === 'run.in-progress');
  return { run_id, reader };
}

/** A connection to the events of a run, which has brought some. */
async function read(node: Served, run_id: string) {
  const { body } = await node.get(`/runs/${run_id}/events`, sse);
  const reader = body?.getReader();
  await reader?.read();
  return reader;
}

const statusOf = async (node: Served, run_id: string): Promise<string> =>
  (await (await node.get(`/runs/${run_id}`)).json()).status;

/** Resolves when a run is cancelled. A stream of its events would keep it. */
async function cancelled(node: Served, run_id: string): Promise<void> {
  await expect.poll(() => statusOf(node, run_id)).toBe('cancelled');
}

/** Resolves when the time of grace of every reader that has left the node before is over. */
async function graceOver(node: Served, seconds = shortGrace): Promise<void> {
  const { run_id, reader } = await begun(node, seconds);
  await reader?.cancel();
  await cancelled(node, run_id);
}

/** Repeats a test with longer times of grace: on a busy machine, a client needs longer than a short one to come back. */
async function withGrace(test: (seconds: number) => Promise<void>): Promise<void> {
  for (const seconds of [shortGrace, 3]) {
    try {
      return await test(seconds);
    } catch {
      // Again.
    }
  }
  await test(15);
}

/** What two nodes of one store do when the readers of a run disconnect. */
export function countReadersOfAllNodes(open: () => Promise<readonly [Served, Served]>): void {
  it('keep a run whose client has come back to the other one, and cancel it when that one leaves', async () => {
    const [a, b] = await open();
    await withGrace(async (seconds) => {
      const { run_id, reader } = await begun(a, seconds);
      await reader?.cancel();
      const back = await read(b, run_id);
      await graceOver(a, seconds);
      expect(await statusOf(b, run_id)).toBe('in-progress');
      await back?.cancel();
      await cancelled(a, run_id);
    });
  });

  it('keep a run that has readers at both until the last one leaves, at any of them', async () => {
    const [a, b] = await open();
    const { run_id, reader } = await begun(a, shortGrace);
    await (await read(b, run_id))?.cancel();
    await graceOver(b);
    expect(await statusOf(b, run_id)).toBe('in-progress');
    await reader?.cancel();
    await cancelled(b, run_id);
  });

  it('keep a run while its client moves from one to the other again and again', async () => {
    const [a, b] = await open();
    await withGrace(async (seconds) => {
      const { run_id, reader } = await begun(a, seconds);
      let last = reader;
      for (let n = 0; n < 6; n += 1) {
        const next = await read(n % 2 === 0 ? b : a, run_id);
        await last?.cancel();
        last = next;
      }
      await graceOver(a, seconds);
      await graceOver(b, seconds);
      expect(await statusOf(b, run_id)).toBe('in-progress');
      await last?.cancel();
      await cancelled(b, run_id);
    });
  });

  it('cancel a run whose reader has left a node that was stopped', async () => {
    const [a, b] = await open();
    const { run_id, reader } = await begun(a, shortGrace);
    const other = await read(b, run_id);
    await graceOver(a);
    await b.app.close();
    await other?.cancel().catch(() => undefined);
    await reader?.cancel();
    await cancelled(a, run_id);
  });
}

export const agents = [never];
