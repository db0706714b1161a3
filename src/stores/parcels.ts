import type { RunRow, Write } from '../core/store.ts';

/** Some writes of a commit as one message to a server. */
export interface Parcel {
  /** A JSON array: what each write is, but for its events. */
  readonly writes: string;
  /** The events of each write, one line of JSON each; empty where it has none. */
  readonly bodies: readonly string[];
  /** The run of each write, as it is where the write is taken. */
  readonly rows: readonly RunRow[];
}

/** A message is at most about this long, so that neither side holds more, or keeps others waiting for longer. */
const maxChars = 4 * 1024 * 1024;
const maxWrites = 500;

/**
 * What goes over the network for a commit, in order; nearly always one message. Events stay outside of the JSON:
 * to escape them once more, and to undo that, would take more than half of the time of a commit.
 */
export function* parcels(writes: readonly Write[], describe: (write: Write) => object): Generator<Parcel> {
  let texts: string[] = [];
  let bodies: string[] = [];
  let rows: RunRow[] = [];
  let chars = 0;
  const parcel = (): Parcel => ({ writes: `[${texts.join()}]`, bodies, rows });
  for (const write of writes) {
    const text = JSON.stringify(describe(write));
    const body = write.lines.join('\n');
    texts.push(text);
    bodies.push(body);
    rows.push(write.row);
    chars += text.length + body.length;
    if (texts.length < maxWrites && chars < maxChars) continue;
    yield parcel();
    texts = [];
    bodies = [];
    rows = [];
    chars = 0;
  }
  if (texts.length > 0) yield parcel();
}

/** What a write adds to its session; each URL once. */
export function sessionOf({ history, state }: Write): { history?: string[]; state?: string } {
  return {
    ...(history !== undefined && { history: [...new Set(history.map(storable))] }),
    ...(state !== undefined && { state: storable(state) }),
  };
}

// Clients send these URLs. With half of a surrogate pair, or a zero, a server would refuse all of the message.
const storable = (url: string): string => Buffer.from(url).toString().replaceAll('\0', '\ufffd');
