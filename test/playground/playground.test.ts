import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Playground } from '../../src/playground/app/playground.ts';

/** The page in a tab, whose server never answers. */
function playgroundIn(tab: { visibilityState: string }): Playground {
  vi.stubGlobal('document', tab);
  vi.stubGlobal('location', { href: 'http://h/', hash: '' });
  vi.stubGlobal('addEventListener', () => {});
  vi.stubGlobal('removeEventListener', () => {});
  vi.stubGlobal('fetch', () => new Promise(() => {}));
  const playground = new Playground();
  const stop = playground.start();
  onTestFinished(() => {
    stop();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });
  return playground;
}

describe('the clock of the page', () => {
  it('stands still in a hidden tab, and is right at once when the tab is shown', () => {
    vi.useFakeTimers({ now: 0 });
    const tab = Object.assign(new EventTarget(), { visibilityState: 'hidden' });
    const { now } = playgroundIn(tab);
    vi.advanceTimersByTime(60_500);
    expect(now.value).toBe(0);
    tab.visibilityState = 'visible';
    tab.dispatchEvent(new Event('visibilitychange'));
    expect(now.value).toBe(60_500);
    vi.advanceTimersByTime(1_000);
    expect(now.value).toBe(61_000);
  });
});
