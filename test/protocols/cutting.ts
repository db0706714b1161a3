import { setImmediate as nextTurn } from 'node:timers/promises';

/** How a stream is cut: its connection breaks, or it ends as if it were complete. */
export type Cut = 'break' | 'end';

/**
 * A `fetch` whose requests go to one server after the other, and whose first streams are cut after a number of bytes each.
 * The request itself fails where the number is negative: -1 before it is sent, -2 when its response has come.
 */
export function cutting(urls: readonly string[], bytes: readonly number[], cut: Cut = 'break') {
  const left = [...bytes];
  let [sent, cuts] = [0, 0];
  const onCut = (): void => {
    cuts += 1;
  };
  const send: typeof fetch = async (input, init) => {
    const fails = (left[0] ?? 0) < 0 ? left.shift() : undefined;
    if (fails !== undefined) onCut();
    if (fails === -1) throw new TypeError('fetch failed');
    sent += 1;
    const { pathname, search } = new URL(String(input));
    const response = await fetch(`${urls[sent % urls.length]}${pathname}${search}`, init);
    if (fails !== undefined) {
      await response.body?.cancel();
      throw new TypeError('fetch failed');
    }
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
    const after = isStream ? left.shift() : undefined;
    if (after === undefined || response.body === null) return response;
    return new Response(cutAfter(response.body, after, cut, onCut), response);
  };
  return { fetch: send, cuts: () => cuts };
}

function cutAfter(body: ReadableStream<Uint8Array>, bytes: number, cut: Cut, onCut: () => void) {
  const reader = body.getReader();
  let left = bytes;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (left <= 0) {
          onCut();
          // An error takes what the client has not read yet.
          await nextTurn();
          await reader.cancel();
          return cut === 'end' ? controller.close() : controller.error(new TypeError('terminated'));
        }
        const { value, done } = await reader.read();
        if (done) return controller.close();
        controller.enqueue(value.subarray(0, left));
        left -= value.length;
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
