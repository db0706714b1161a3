import type { RunRow, When, Write, WrittenRow } from '../../core/store.ts';
import type { MemoryLog } from './log.ts';
import { Sorted } from './sorted.ts';

/** A run in the memory store. */
export interface RunRecord {
  row: WrittenRow;
  readonly input: Write['input'];
  readonly log: MemoryLog;
  readonly session: SessionRecord;
  journal: string[];
  /** Ids of its messages, which are deleted with it. */
  resources: readonly string[];
}

/** The row of a run. */
export const rowOf = ({ row, log }: RunRecord): RunRow => ({ ...row, last: log.last });

/** A row whose targets stay as they are: only `setTargets` changes them. */
export const withTargets = (row: WrittenRow, { targets }: WrittenRow): WrittenRow =>
  row.targets === targets ? row : { ...row, targets };

export const byId = (a: RunRecord, b: RunRecord): number => compareText(a.row.run_id, b.row.run_id);

/** Comparison of two texts for a sort. */
export const compareText = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);

/** A session in the memory store, with its runs. */
export class SessionRecord {
  readonly session_id: string;
  readonly owner: string | null;
  readonly runs = new Sorted(byId);
  /** The runs that are not final; undefined while there are none, which is most of the time. */
  unfinished: Sorted<RunRecord> | undefined;
  readonly history = new NameList();
  /** Ids of all resources of the session, of runs and others. */
  readonly resources = new NameList();
  state: string | null = null;
  /** When the newest run was created, or the last of the deleted runs ended. */
  lastUsed = '';
  /** Whether the session was deleted. Queries find neither it nor its runs, which sweeps delete. */
  removed = false;

  constructor({ session_id, owner }: WrittenRow) {
    this.session_id = session_id;
    this.owner = owner;
  }

  /** Whether the unfinished runs violate the condition of a write. */
  isBusy(run_id: string, when: When): boolean {
    const others = this.unfinished;
    const [first, last] = [others?.first?.row.run_id ?? run_id, others?.last?.row.run_id ?? run_id];
    return (when !== 'last' && first < run_id) || (when !== 'first' && last > run_id);
  }
}

/** Names up to which a list is searched linearly. */
const maxListLength = 8;

/**
 * Unique names in the order in which they were added. A list while there are few, as in most sessions, because a Set
 * takes 200 bytes.
 */
class NameList {
  #names: string[] | Set<string> = [];

  add(name: string): void {
    if (this.#names instanceof Set) this.#names.add(name);
    else if (this.#names.includes(name)) return;
    // A copy: with a push, V8 would make room for 17 names.
    else if (this.#names.length < maxListLength) this.#names = [...this.#names, name];
    else this.#names = new Set(this.#names).add(name);
  }

  has(name: string): boolean {
    return this.#names instanceof Set ? this.#names.has(name) : this.#names.includes(name);
  }

  delete(name: string): void {
    if (this.#names instanceof Set) this.#names.delete(name);
    else if (this.#names.includes(name)) this.#names = this.#names.filter((other) => other !== name);
  }

  all(): string[] {
    return [...this.#names];
  }

  /** Removes the first `count` names, and returns them. */
  removeFirst(count: number): string[] {
    const removed: string[] = [];
    for (const name of this.#names) {
      if (removed.length === count) break;
      removed.push(name);
    }
    for (const name of removed) this.delete(name);
    return removed;
  }
}

/** Up to `limit` items, until `holds` is false. */
export function first<T>(items: Iterable<T> | undefined, limit: number, holds?: (item: T) => boolean): T[] {
  const found: T[] = [];
  for (const item of items ?? []) {
    if (found.length === limit || holds?.(item) === false) break;
    found.push(item);
  }
  return found;
}

/** As `first`, the rows of runs. */
export const firstRows = (...of: Parameters<typeof first<RunRecord>>): RunRow[] => first(...of).map(rowOf);
