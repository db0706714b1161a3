import { map } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Agent, defineAgent } from '../../src/core/agent.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { answerOf, begun, runOf } from '../support/lives.ts';

/** Short: ids that are made ahead of the clock stay ahead. */
const timeToReply = 100;
/** The sweep that ends a run whose time is over comes too late for the tests. */
const limits = { sweepInterval: 3_600_000 };
const reply = { type: 'message' as const, message: { parts: [{ content: 'yes' }] } };

const hurried = (durable: boolean): Agent =>
  defineAgent(
    { name: 'asks', description: 'Gives a moment for the reply.' },
    (_, context) => context.await('?', { expiresIn: timeToReply }).pipe(map(() => 'ok')),
    { durable },
  );

/** A run that awaits, in memory here. */
async function here(durable: boolean): Promise<[Engine, run_id: string]> {
  const engine = await startEngine([hurried(durable)], new MemoryStore(), limits);
  return [engine, await begun(engine, 'asks')];
}

/** A run that awaits, in the store alone. */
async function stored(): Promise<[Engine, run_id: string]> {
  const store = new MemoryStore();
  const before = await startEngine([hurried(true)], store, limits);
  const run_id = await begun(before, 'asks');
  await before.stop();
  return [await startEngine([hurried(true)], store, limits), run_id];
}

describe('a reply to a question that has a time', () => {
  it.each([
    ['a run in memory', () => here(false)],
    ['a durable run in memory', () => here(true)],
    ['a run in the store', stored],
  ])('is taken until then, and refused from then on, also before a sweep ends the run: %s', async (_, place) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const [[engine, run_id], [other, late]] = [await place(), await place()];
    const [{ await_request }, { await_request: question }] = [await runOf(engine, run_id), await runOf(other, late)];
    expect(Date.parse(await_request?.expires_at ?? '')).toBe(Date.now() + timeToReply);
    vi.advanceTimersByTime(timeToReply - 1);
    expect(await answerOf(engine.resume(run_id, reply).then(({ run }) => run))).toBe('in-progress');
    vi.advanceTimersByTime(1);
    expect(await answerOf(other.resume(late, reply).then(({ run }) => run))).toBe('not_awaiting');
    const { id } = question ?? {};
    expect(await answerOf(other.resume(late, { ...reply, ...(id && { id }) }).then(({ run }) => run))).toBe(
      'not_awaiting',
    );
    expect((await runOf(other, late)).status).toBe('awaiting');
    // Its client may still leave the question.
    expect(await answerOf(other.cancel(late, id))).toBe('cancelling');
    await Promise.all([engine.stop(), other.stop()]);
  });
});
