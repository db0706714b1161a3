import { setImmediate as nextTurn } from 'node:timers/promises';

/** A fetch whose streams break: the nth one after `bytes[n]` of its body, later ones never. */
export function cuttingFetch(
  bytes: readonly number[],
  send: typeof fetch = fetch,
): { fetch: typeof fetch; cuts: () => number } {
  const left = [...bytes];
  let cuts = 0;
  return {
    cuts: () => cuts,
    async fetch(input, init) {
      const response = await send(input, init);
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
      const after = isStream ? left.shift() : undefined;
      if (after === undefined || response.body === null) return response;
      const { status, headers } = response;
      const body = cutAfter(response.body, after, () => {
        cuts += 1;
      });
      return new Response(body, { status, headers });
    },
  };
}

function cutAfter(body: ReadableStream<Uint8Array>, bytes: number, onCut: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let left = bytes;
  return new ReadableStream(
    {
      async pull(controller) {
        if (left <= 0) {
          onCut();
          // An error takes what the client has not read yet.
          await nextTurn();
          await reader.cancel();
          controller.error(new TypeError('the connection broke'));
          return;
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
