import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type CallOptions, ClientError, type Diagnostic } from '../../src/client/client.ts';
import { RunDiagnostics } from '../../src/playground/inspector/diagnostics.tsx';

const line = (message: string): Diagnostic => ({
  kind: 'log',
  at: 1,
  agent_name: 'a',
  logged_at: '2026-01-01T00:00:00.000Z',
  level: 'info',
  message,
});

/** A server that has these entries, in pages of two. */
function serverOf(entries: Diagnostic[]) {
  const asked: number[] = [];
  const diagnostics = async (_: string, after = 0) => {
    asked.push(after);
    const next = after + 2;
    return { diagnostics: entries.slice(after, next), ...(next < entries.length && { next }) };
  };
  return { asked, client: { diagnostics } };
}

const messagesOf = ({ entries }: RunDiagnostics) => entries.value.map((one) => ('message' in one ? one.message : ''));

describe('the diagnostics of the run that the page follows', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('are read in pages, each entry once', async () => {
    const entries = ['a', 'b', 'c'].map(line);
    const { client, asked } = serverOf(entries);
    const read = new RunDiagnostics(client, 'id');
    read.offer(3, true);
    await vi.advanceTimersByTimeAsync(0);
    expect([messagesOf(read), asked, read.state.value]).toEqual([['a', 'b', 'c'], [0, 2], 'read']);
    entries.push(line('d'));
    read.offer(4, true);
    await vi.advanceTimersByTimeAsync(0);
    expect([messagesOf(read), asked]).toEqual([
      ['a', 'b', 'c', 'd'],
      [0, 2, 3],
    ]);
  });

  it('are read again when the run has more events, ever less often, and at once when it settles', async () => {
    const { client, asked } = serverOf([]);
    const read = new RunDiagnostics(client, 'id');
    for (let events = 0; events < 600; events += 1) {
      read.offer(events, false);
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(asked.length).toBeLessThan(10);
    const before = asked.length;
    read.offer(601, true);
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toHaveLength(before + 1);
  });

  it('cause no request while the run has no new events, and none when they are not shown any more', async () => {
    const { client, asked } = serverOf([]);
    const read = new RunDiagnostics(client, 'id');
    read.offer(1, false);
    read.offer(1, false);
    await vi.advanceTimersByTimeAsync(100_000);
    expect(asked).toHaveLength(1);
    read.offer(2, false);
    read.close();
    await vi.advanceTimersByTimeAsync(100_000);
    expect(asked).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are not asked for again where the caller may not read them, but after another error', async () => {
    let status = 500;
    let asked = 0;
    const diagnostics = async () => {
      asked += 1;
      throw new ClientError({ code: 'server_error', status, message: 'No.' });
    };
    const read = new RunDiagnostics({ diagnostics }, 'id');
    read.offer(1, true);
    await vi.advanceTimersByTimeAsync(0);
    expect(read.state.value).toEqual({ problem: 'No.' });
    status = 403;
    read.offer(2, true);
    await vi.advanceTimersByTimeAsync(0);
    expect(read.state.value).toBe('forbidden');
    read.offer(3, true);
    await vi.advanceTimersByTimeAsync(100_000);
    expect(asked).toBe(2);
  });

  it('change nothing of what is shown after they are closed in the middle of a read', async () => {
    const closing = async (_run_id: string, _after?: number, { signal }: CallOptions = {}) => {
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      throw signal?.reason;
    };
    const read = new RunDiagnostics({ diagnostics: closing }, 'id');
    read.offer(1, true);
    read.close();
    await vi.advanceTimersByTimeAsync(0);
    expect(read.state.value).toBe('reading');
  });

  it('take no entries that come after they are closed', async () => {
    const { client } = serverOf(['a'].map(line));
    const read = new RunDiagnostics(client, 'id');
    read.offer(1, true);
    read.close();
    await vi.advanceTimersByTimeAsync(0);
    expect([messagesOf(read), read.state.value]).toEqual([[], 'reading']);
  });
});
