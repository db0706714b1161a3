import type { ServerResponse } from 'node:http';

interface Stream {
  readonly raw: ServerResponse;
  written: number;
}

/**
 * Keeps idle streams open through proxies: a comment line, where nothing was written since the last beat.
 * One timer for all streams, running only while there are any.
 */
export class Heartbeat {
  readonly #milliseconds: number;
  readonly #streams = new Set<Stream>();
  #timer: NodeJS.Timeout | undefined;

  constructor(milliseconds: number) {
    this.#milliseconds = milliseconds;
  }

  /** Returns how to stop beating for this stream. */
  add(raw: ServerResponse): () => void {
    const stream = { raw, written: 0 };
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#beat(), this.#milliseconds);
    return () => {
      this.#streams.delete(stream);
      if (this.#streams.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #beat(): void {
    for (const stream of this.#streams) {
      const { raw } = stream;
      const written = raw.socket?.bytesWritten ?? 0;
      // A stream that waits for its reader is not idle; a comment would only lengthen its queue.
      if (written === stream.written && !raw.writableNeedDrain && !raw.writableEnded) raw.write(':\n\n');
      stream.written = raw.socket?.bytesWritten ?? written;
    }
  }
}
