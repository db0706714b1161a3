import type { FastifyReply } from 'fastify';
import { expect, it, onTestFinished, vi } from 'vitest';
import { StreamMonitor } from '../../src/http/sse/stream-monitor.ts';
import { unobserved } from '../../src/http/traffic.ts';

/** The reply of a stream, without a socket of its own; counts what is written. */
function streamOf() {
  const socket = { bytesWritten: 0, writableLength: 0 };
  const writes: number[] = [];
  const raw = {
    socket,
    writableEnded: false,
    destroyed: false,
    write(text: string): void {
      socket.bytesWritten += text.length;
      writes.push(Date.now());
    },
  };
  return { writes, raw, reply: { raw, request: {} } as unknown as FastifyReply };
}

it.each([1_000, 15_000, 25_000])('sends no byte for a heartbeat of %i ms and one second at most', (heartbeat) => {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const monitor = new StreamMonitor({ heartbeat, maxStreams: 10, streamsPerOwner: 0, traffic: unobserved });
  const { writes, raw, reply } = streamOf();
  monitor.add(reply, 'run', () => {});
  // A token at a moment between two checks, and then nothing.
  vi.advanceTimersByTime(heartbeat + 10);
  raw.write('token');
  vi.advanceTimersByTime(5 * heartbeat);
  const gaps = writes.map((at, index) => at - (writes[index - 1] ?? 0));
  expect(writes.length).toBeGreaterThan(4);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(heartbeat + 1_000);
  const afterToken = gaps.slice(writes.indexOf(heartbeat + 10) + 1);
  expect(Math.min(...afterToken)).toBeGreaterThanOrEqual(heartbeat - 1);
});
