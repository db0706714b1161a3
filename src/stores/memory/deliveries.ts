import {
  type Delivery,
  type DeliveryFilter,
  type DeliveryResult,
  finishedDelivery,
  type NewDelivery,
  newDelivery,
  type Outbox,
  replayedDelivery,
} from '../../core/outbox.ts';
import type { RunRow } from '../../core/store.ts';
import { compareText } from './records.ts';
import { Sorted } from './sorted.ts';

interface DeliveryRecord {
  row: Delivery;
}

const byId = (a: DeliveryRecord, b: DeliveryRecord): number => compareText(a.row.delivery_id, b.row.delivery_id);

/** When a delivery can be claimed. */
const dueOf = ({ claimed_until, next_at }: Delivery): string => claimed_until ?? next_at;

/** The deliveries of a memory store. */
export class MemoryDeliveries implements Outbox {
  readonly #records = new Map<string, DeliveryRecord>();
  readonly #byId = new Sorted(byId);
  readonly #ofRun = new Groups();
  readonly #ofOwner = new Groups();
  /** The pending deliveries of each line, in order. */
  readonly #lines = new Map<string, DeliveryRecord[]>();
  /** The first delivery of each line. */
  readonly #due = new Sorted<DeliveryRecord>((a, b) => compareText(dueOf(a.row), dueOf(b.row)) || byId(a, b));
  /** Deliveries that are not pending. */
  readonly #ended = new Sorted<DeliveryRecord>((a, b) => compareText(a.row.created_at, b.row.created_at) || byId(a, b));

  has(delivery_id: string): boolean {
    return this.#records.has(delivery_id);
  }

  add(added: readonly NewDelivery[], run: RunRow): void {
    for (const one of added) {
      const record: DeliveryRecord = { row: newDelivery(one, run) };
      this.#records.set(one.delivery_id, record);
      this.#byId.add(record);
      this.#ofRun.add(run.run_id, record);
      if (run.owner !== null) this.#ofOwner.add(run.owner, record);
      this.#queue(record);
    }
  }

  async claimDeliveries(now: string, until: string, limit: number): Promise<Delivery[]> {
    const claimed: Delivery[] = [];
    for (let next = this.#due.first; next !== undefined && claimed.length < limit; next = this.#due.first) {
      if (dueOf(next.row) > now) break;
      this.#due.delete(next);
      next.row = { ...next.row, claimed_until: until };
      this.#due.add(next);
      claimed.push(next.row);
    }
    return claimed;
  }

  async finishDelivery({ delivery_id, claimed_until }: Delivery, result: DeliveryResult): Promise<boolean> {
    const record = this.#records.get(delivery_id);
    if (record?.row.state !== 'pending' || record.row.claimed_until !== claimed_until) return false;
    const finished = finishedDelivery(record.row, result);
    if (result.state === 'pending') {
      this.#due.delete(record);
      record.row = finished;
      this.#due.add(record);
    } else {
      this.#leaveLine(record);
      record.row = finished;
      this.#ended.add(record);
    }
    return true;
  }

  async delivery(delivery_id: string): Promise<Delivery | undefined> {
    return this.#records.get(delivery_id)?.row;
  }

  async deliveries(
    { run_id, owner, state }: DeliveryFilter,
    before: string | undefined,
    limit: number,
  ): Promise<Delivery[]> {
    const ofOwner = owner === undefined ? this.#byId : this.#ofOwner.get(owner);
    const records = run_id === undefined ? ofOwner : this.#ofRun.get(run_id);
    const found: Delivery[] = [];
    for (const { row } of records?.descending(({ row }) => before !== undefined && row.delivery_id >= before) ?? []) {
      if (found.length === limit) break;
      if (owner !== undefined && row.owner !== owner) continue;
      if (state === undefined || row.state === state) found.push(row);
    }
    return found;
  }

  async replayDelivery(delivery_id: string, now: string): Promise<boolean> {
    const record = this.#records.get(delivery_id);
    if (record === undefined || record.row.state === 'pending') return false;
    this.#ended.delete(record);
    record.row = replayedDelivery(record.row, now);
    this.#queue(record);
    return true;
  }

  removeOfRun(run_id: string): void {
    for (const record of this.#ofRun.all(run_id)) this.#delete(record);
  }

  removeOfOwner(owner: string): void {
    for (const record of this.#ofOwner.all(owner)) this.#delete(record);
  }

  /** Deletes up to `count` deliveries that are not pending, from before a time. Returns how many more it could delete. */
  sweep(before: string, count: number): number {
    let left = count;
    for (let old = this.#ended.first; left > 0 && old !== undefined; old = this.#ended.first, left -= 1) {
      if (old.row.created_at >= before) break;
      this.#delete(old);
    }
    return left;
  }

  #delete(record: DeliveryRecord): void {
    const { delivery_id, run_id, owner, state } = record.row;
    if (state === 'pending') this.#leaveLine(record);
    else this.#ended.delete(record);
    this.#records.delete(delivery_id);
    this.#byId.delete(record);
    this.#ofRun.delete(run_id, record);
    if (owner !== null) this.#ofOwner.delete(owner, record);
  }

  /** Adds a delivery to the end of its line. */
  #queue(record: DeliveryRecord): void {
    const name = lineOf(record.row);
    const line = this.#lines.get(name) ?? [];
    this.#lines.set(name, line);
    line.push(record);
    if (line.length === 1) this.#due.add(record);
  }

  #leaveLine(record: DeliveryRecord): void {
    const name = lineOf(record.row);
    const line = this.#lines.get(name) ?? [];
    const wasFirst = line[0] === record;
    const left = line.filter((other) => other !== record);
    if (left.length === 0) this.#lines.delete(name);
    else this.#lines.set(name, left);
    if (!wasFirst) return;
    this.#due.delete(record);
    if (left[0] !== undefined) this.#due.add(left[0]);
  }
}

const lineOf = ({ run_id, url }: Delivery): string => `${run_id} ${url}`;

/** Deliveries by the name of what they belong to. */
class Groups {
  readonly #groups = new Map<string, Sorted<DeliveryRecord>>();

  get(name: string): Sorted<DeliveryRecord> | undefined {
    return this.#groups.get(name);
  }

  /** A copy, for a loop that deletes. */
  all(name: string): DeliveryRecord[] {
    return [...(this.#groups.get(name)?.ascending() ?? [])];
  }

  add(name: string, record: DeliveryRecord): void {
    const group = this.#groups.get(name) ?? new Sorted(byId);
    this.#groups.set(name, group);
    group.add(record);
  }

  delete(name: string, record: DeliveryRecord): void {
    const group = this.#groups.get(name);
    group?.delete(record);
    if (group?.size === 0) this.#groups.delete(name);
  }
}
