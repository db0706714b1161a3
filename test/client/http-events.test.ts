import { describe, expect, it } from 'vitest';
import { frames } from '../../src/client/http-events.ts';
import { IdleTimeout } from '../../src/client/idle-timeout.ts';

const type = { 'Content-Type': 'text/event-stream; charset=utf-8' };
const onRetry = (): void => {};

/** A response with these chunks, and whether its reader cancelled it. */
function streamed(chunks: Iterable<Uint8Array>, onPull: () => void = () => {}) {
  const iterator = chunks[Symbol.iterator]();
  const state = { cancelled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        onPull();
        const { value, done } = iterator.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel() {
        state.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { response: new Response(body, { headers: type }), state };
}

const idle = (milliseconds = 10_000): IdleTimeout => new IdleTimeout(milliseconds);

async function read(response: Response, limit?: number): Promise<{ id?: string | undefined; data: string }[]> {
  const all = [];
  for await (const batch of frames(response, idle(), onRetry, limit)) all.push(...batch);
  return all.map(({ id, data }) => ({ id, data }));
}

describe('the frames of a stream', () => {
  const text = 'id: 1\ndata: "Grüße, 世界 🌊"\n\n: still here\n\nid: 2\ndata: "second"\n\n';
  const expected = [
    { id: '1', data: '"Grüße, 世界 🌊"' },
    { id: '2', data: '"second"' },
  ];

  it.each([
    ['LF', text],
    ['CRLF', text.replaceAll('\n', '\r\n')],
    ['CR', text.replaceAll('\n', '\r')],
    ['a byte order mark', `\uFEFF${text}`],
  ])('are the same with %s, wherever the chunks are cut', async (_what, variant) => {
    const bytes = new TextEncoder().encode(variant);
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      // A CR at the end may be the first half of CRLF, so the last frame needs one more byte.
      expect(await read(streamed([...chunks, new TextEncoder().encode(': end\n')]).response)).toEqual(expected);
    }
  });

  it('are read only when the reader asks; leaving the loop cancels the body', async () => {
    let pulls = 0;
    function* endless() {
      for (let id = 1; ; id += 1) yield new TextEncoder().encode(`id: ${id}\ndata: ${id}\n\n`);
    }
    const { response, state } = streamed(endless(), () => {
      pulls += 1;
    });
    for await (const [frame] of frames(response, idle(), onRetry)) {
      expect(pulls).toBe(Number(frame?.id));
      if (frame?.id === '5') break;
    }
    expect(state.cancelled).toBe(true);
    expect(pulls).toBe(5);
  });

  it('are limited in size, even without an end', async () => {
    function* endless() {
      yield new TextEncoder().encode('id: 1\ndata: ');
      for (;;) yield new Uint8Array(1_000).fill(120);
    }
    const { response, state } = streamed(endless());
    await expect(read(response, 10_000)).rejects.toMatchObject({ code: 'event_too_large', retryable: false });
    expect(state.cancelled).toBe(true);
  });
});

describe('IdleTimeout', () => {
  it('aborts work that takes longer than the time-out, and no other', async () => {
    const long = idle(10_000);
    expect(await long.race(Promise.resolve('here'))).toBe('here');
    const short = idle(5);
    const aborted = new Promise((_resolve, reject) => {
      short.signal.addEventListener('abort', () => reject(short.signal.reason));
    });
    await expect(short.race(aborted)).rejects.toMatchObject({ code: 'silent', status: 0, retryable: true });
  });
});
