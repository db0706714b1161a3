import type { RunRow, Write } from '../../core/store.ts';
import type { MemoryLog } from './log.ts';
import { Sorted } from './sorted.ts';

/** A run, as the memory store has it. */
export interface Kept {
  row: RunRow;
  /** For as long as the run may be re-entered. */
  input: Write['input'];
  readonly log: MemoryLog;
  readonly session: KeptSession;
  journal: string[];
  /** Ids of its messages, which go with it. */
  resources: string[];
}

export const byId = (a: Kept, b: Kept): number => order(a.row.run_id, b.row.run_id);

/** Of two texts, as a sort wants it. */
export const order = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);

/** A session, and what is in it. */
export class KeptSession {
  readonly session_id: string;
  readonly runs = new Sorted(byId);
  /** Those of them that are not over; undefined while there are none, as most of the time. */
  unfinished: Sorted<Kept> | undefined;
  readonly history = new Names();
  /** Of all that is kept for it, with and without a run. */
  readonly resources = new Names();
  state: string | null = null;
  /** When the last of its runs that are gone was over, or the newest was made. */
  used = '';
  /** Whether it was removed, and is cleared bit by bit: neither it nor its runs are known any more. */
  removed = false;

  constructor(session_id: string) {
    this.session_id = session_id;
  }
}

/** Up to so many names are looked for one by one. */
const few = 8;

/** Names in the order in which they came, each once. A list while they are few, as they are in most sessions: a Set is 200 bytes. */
class Names {
  #names: string[] | Set<string> = [];

  add(name: string): void {
    if (this.#names instanceof Set) this.#names.add(name);
    else if (this.#names.length === 0) this.#names = [name];
    else if (this.#names.includes(name)) return;
    else if (this.#names.length < few) this.#names.push(name);
    else this.#names = new Set(this.#names).add(name);
  }

  delete(name: string): void {
    if (this.#names instanceof Set) this.#names.delete(name);
    else if (this.#names.includes(name)) this.#names = this.#names.filter((one) => one !== name);
  }

  all(): string[] {
    return [...this.#names];
  }

  /** Takes out the first ones, at most so many. */
  take(count: number): string[] {
    const taken: string[] = [];
    for (const name of this.#names) {
      if (taken.length === count) break;
      taken.push(name);
    }
    for (const name of taken) this.delete(name);
    return taken;
  }
}
