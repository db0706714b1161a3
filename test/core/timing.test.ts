import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { linked, TooLate, withDeadline } from '../../src/core/timing.ts';

describe('a signal that is linked to an outer one', () => {
  it('fires with the outer one, with the same reason, also where that has fired before', () => {
    const outer = new AbortController();
    const before = linked(outer.signal);
    outer.abort('over');
    const after = linked(outer.signal);
    for (const { signal } of [before, after]) expect([signal.aborted, signal.reason]).toEqual([true, 'over']);
  });

  it('fires alone, and does not fire the outer one or others', () => {
    const outer = new AbortController();
    const [one, other] = [linked(outer.signal), linked(outer.signal)];
    one.abort('mine');
    expect([one.signal.reason, other.signal.aborted, outer.signal.aborted]).toEqual(['mine', false, false]);
  });

  it('does not fire with the outer one after it is unlinked', () => {
    const outer = new AbortController();
    const [one, other] = [linked(outer.signal), linked(outer.signal)];
    one.unlink();
    outer.abort();
    expect([one.signal.aborted, other.signal.aborted]).toEqual([false, true]);
  });

  it('shares a listener of the outer one with others, because Node 20 warns of the eleventh, and leaves none', () => {
    const outer = new AbortController();
    const links = Array.from({ length: 20 }, () => linked(outer.signal));
    expect(getEventListeners(outer.signal, 'abort')).toHaveLength(1);
    for (const { unlink } of links) unlink();
    expect(getEventListeners(outer.signal, 'abort')).toEqual([]);
  });

  it('is linked still where an earlier one is unlinked twice', () => {
    const outer = new AbortController();
    const early = linked(outer.signal);
    early.unlink();
    const late = linked(outer.signal);
    early.unlink();
    outer.abort();
    expect([early.signal.aborted, late.signal.aborted]).toEqual([false, true]);
  });
});

describe('work with a deadline', () => {
  it('gets a signal that fires at the deadline, or with the outer one', async () => {
    const reasonOf = (signal: AbortSignal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
    expect(await withDeadline(1, reasonOf)).toBeInstanceOf(TooLate);
    const outer = new AbortController();
    const reason = withDeadline(60_000, reasonOf, outer.signal);
    outer.abort('over');
    expect(await reason).toBe('over');
  });
});
