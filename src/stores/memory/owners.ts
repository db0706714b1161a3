import type { AgentFigures } from '../../core/store.ts';
import { ById } from './by-id.ts';
import { byId, type RunRecord, type SessionRecord } from './records.ts';
import { Sorted } from './sorted.ts';

/** What an owner has. */
class OwnerRecord {
  readonly runs = new Sorted<RunRecord>(byId);
  readonly unfinished = new Sorted<RunRecord>(byId);
  readonly sessions = new ById<SessionRecord>();
  /** By agent. */
  readonly figures = new Map<string, AgentFigures>();

  get isEmpty(): boolean {
    return this.runs.size === 0 && this.sessions.isEmpty && this.figures.size === 0;
  }
}

/** What owners have, for lists by owner. An owner is forgotten when it has nothing more. */
export class Owners {
  readonly #records = new Map<string, OwnerRecord>();

  get(owner: string): OwnerRecord | undefined {
    return this.#records.get(owner);
  }

  /** Adds to what an owner has. Does nothing without an owner. */
  add(owner: string | null, change: (record: OwnerRecord) => void): void {
    if (owner === null) return;
    const record = this.#records.get(owner) ?? new OwnerRecord();
    this.#records.set(owner, record);
    change(record);
  }

  /** Deletes from what an owner has. */
  delete(owner: string | null, change: (record: OwnerRecord) => void): void {
    const record = owner === null ? undefined : this.#records.get(owner);
    if (owner === null || record === undefined) return;
    change(record);
    if (record.isEmpty) this.#records.delete(owner);
  }
}
