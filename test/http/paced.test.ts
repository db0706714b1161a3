import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { encode } from '../../src/core/encode.ts';
import type { Batch } from '../../src/core/ports/run-store.ts';
import { Paced } from '../../src/http/sse/paced.ts';

const token = encode({ type: 'message.part', part: { content_type: 'text/plain', content: 'a' } });
const other = encode({ type: 'generic', generic: { kind: 'progress' } });

/** A source of batches, each with one line, that the test adds. */
function paced() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const lines: string[] = [];
  let [first, ended, ready] = [1, false, 0];
  const source = new Paced(
    {
      read: (): Batch | 'later' | 'end' => {
        const line = lines.shift();
        if (line === undefined) return ended ? 'end' : 'later';
        first += 1;
        return { first: first - 1, lines: [line] };
      },
      get ended() {
        return ended && lines.length === 0;
      },
      onReady: () => {},
      close: () => {},
    },
    100,
  );
  source.onReady(() => {
    ready += 1;
  });
  return {
    source,
    lines,
    end: () => {
      ended = true;
    },
    ready: () => ready,
  };
}

describe('a paced source', () => {
  it('gives tokens at once after a pause, and then all of an interval in one batch', () => {
    const { source, lines, ready } = paced();
    lines.push(token);
    expect(source.read()).toEqual({ first: 1, lines: [token] });
    lines.push(token, token);
    expect([source.read(), ready()]).toEqual(['later', 0]);
    vi.advanceTimersByTime(100);
    expect(ready()).toBe(1);
    expect(source.read()).toEqual({ first: 2, lines: [token, token] });
    expect(source.read()).toBe('later');
  });

  it('gives any other event at once, after the tokens before it', () => {
    const { source, lines } = paced();
    lines.push(token);
    source.read();
    lines.push(token, other, token);
    expect(source.read()).toEqual({ first: 2, lines: [token, other] });
    expect(source.read()).toBe('later');
  });

  it('gives what it holds at the end, and when it holds much', () => {
    const { source, lines, end } = paced();
    lines.push(token);
    source.read();
    lines.push(...Array.from({ length: 1_500 }, () => token));
    expect(source.read()).toMatchObject({ first: 2, lines: { length: 1_001 } });
    end();
    expect(source.read()).toMatchObject({ lines: { length: 499 } });
    expect(source.read()).toBe('end');
  });

  it('has ended when its source has, and it holds nothing', () => {
    const { source, lines, end } = paced();
    lines.push(token);
    expect([source.read(), source.ended]).toEqual([{ first: 1, lines: [token] }, false]);
    lines.push(token);
    expect([source.read(), source.ended]).toEqual(['later', false]);
    end();
    expect(source.ended).toBe(false);
    expect([source.read(), source.ended]).toEqual([{ first: 2, lines: [token] }, true]);
  });

  it('gives nothing more, and has no timer, once it is closed', () => {
    const { source, lines } = paced();
    lines.push(token, token);
    source.read();
    source.close();
    expect([source.read(), vi.getTimerCount()]).toEqual(['end', 0]);
  });
});
