import type { Batch } from '../../core/ports/run-store.ts';

/** The characters that one request may read and keep until it is answered. */
export interface ReadBudget {
  /** Reads a text of unknown size, and takes it. @throws RivuletError as `take` */
  read(read: () => Promise<string>): Promise<string>;
  /** @throws RivuletError where the request would keep too much */
  take(chars: number): void;
  /** Waits until a large text that was taken may be worked on; undefined where none was. */
  turn(): Promise<void> | undefined;
  /** Whether a list ends here, with a cursor to the rest. */
  readonly pageFull: boolean;
}

/** For callers in this process, which keep what they read for themselves. */
export const unlimited: ReadBudget = { read: (read) => read(), take() {}, turn: () => undefined, pageFull: false };

/** Characters of an event beside what the agent has said. An answer made of many tokens does not keep them. */
const envelope = 100;

/** About the number of characters that are kept of the events of a log. */
export function charsKept({ lines }: Batch): number {
  let chars = 0;
  for (const line of lines) chars += Math.max(1, line.length - envelope);
  return chars;
}
