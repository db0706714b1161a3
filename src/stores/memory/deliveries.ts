import {
  addFailure,
  type Delivery,
  type DeliveryFilter,
  type DeliveryResult,
  finishedDelivery,
  type NewDelivery,
  newDelivery,
  type Outbox,
  type PendingDeliveries,
  replayedDelivery,
  type UrlFailures,
} from '../../core/outbox.ts';
import type { WrittenRow } from '../../core/store.ts';
import { Groups } from './groups.ts';
import { compareText } from './records.ts';
import { Sorted } from './sorted.ts';

interface DeliveryRecord {
  row: Delivery;
}

interface FailingUrl {
  readonly name: string;
  failures: UrlFailures;
}

const byId = (a: DeliveryRecord, b: DeliveryRecord): number => compareText(a.row.delivery_id, b.row.delivery_id);

/** When a delivery can be claimed. */
const dueOf = ({ claimed_until, next_at }: Delivery): string => claimed_until ?? next_at;

/** The deliveries of a memory store. */
export class MemoryDeliveries implements Outbox {
  readonly #records = new Map<string, DeliveryRecord>();
  readonly #byId = new Sorted(byId);
  readonly #ofRun = new Groups(byId);
  readonly #ofOwner = new Groups(byId);
  readonly #pending = new Sorted(byId);
  /** The pending deliveries of each line, in order. */
  readonly #lines = new Map<string, DeliveryRecord[]>();
  /** The first delivery of each line. */
  readonly #due = new Sorted<DeliveryRecord>((a, b) => compareText(dueOf(a.row), dueOf(b.row)) || byId(a, b));
  /** Deliveries that are not pending. */
  readonly #ended = new Sorted<DeliveryRecord>((a, b) => compareText(a.row.created_at, b.row.created_at) || byId(a, b));

  /** By `urlName`. */
  readonly #failing = new Map<string, FailingUrl>();
  readonly #failingByAge = new Sorted<FailingUrl>(
    (a, b) => compareText(a.failures.last_at, b.failures.last_at) || compareText(a.name, b.name),
  );

  has(delivery_id: string): boolean {
    return this.#records.has(delivery_id);
  }

  add(added: readonly NewDelivery[], run: WrittenRow): void {
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
    if (result.state === 'delivered') this.#forget(urlName(finished));
    else if (result.attempted_at !== null) this.#addFailure(urlName(finished), result.attempted_at);
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

  async pendingDeliveries(limit: number): Promise<PendingDeliveries> {
    return { count: Math.min(this.#pending.size, limit), oldest: this.#pending.first?.row.delivery_id ?? null };
  }

  async urlFailures(owner: string | null, url: string): Promise<UrlFailures | undefined> {
    return this.#failing.get(urlName({ owner, url }))?.failures;
  }

  async replayDelivery(delivery_id: string, now: string): Promise<boolean> {
    const record = this.#records.get(delivery_id);
    if (record === undefined || record.row.state === 'pending') return false;
    this.#ended.delete(record);
    record.row = replayedDelivery(record.row, now);
    this.#forget(urlName(record.row));
    this.#queue(record);
    return true;
  }

  removeOfRun(run_id: string): void {
    for (const record of this.#ofRun.all(run_id)) this.#delete(record);
  }

  removeOfOwner(owner: string): void {
    for (const record of this.#ofOwner.all(owner)) this.#delete(record);
    for (const name of this.#failing.keys()) if (name.startsWith(`${owner} `)) this.#forget(name);
  }

  /**
   * Deletes up to `count` deliveries that are not pending, and failures of URLs, from before a time. Returns how many
   * more it could delete.
   */
  sweep(before: string, count: number): number {
    let left = count;
    for (let old = this.#ended.first; left > 0 && old !== undefined; old = this.#ended.first, left -= 1) {
      if (old.row.created_at >= before) break;
      this.#delete(old);
    }
    for (let old = this.#failingByAge.first; left > 0 && old !== undefined; old = this.#failingByAge.first, left -= 1) {
      if (old.failures.last_at >= before) break;
      this.#forget(old.name);
    }
    return left;
  }

  #addFailure(name: string, at: string): void {
    const before = this.#failing.get(name);
    this.#forget(name);
    const failing = { name, failures: addFailure(before?.failures, at) };
    this.#failing.set(name, failing);
    this.#failingByAge.add(failing);
  }

  #forget(name: string): void {
    const failing = this.#failing.get(name);
    if (failing === undefined) return;
    this.#failing.delete(name);
    this.#failingByAge.delete(failing);
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

  /** Adds a pending delivery to the end of its line. */
  #queue(record: DeliveryRecord): void {
    this.#pending.add(record);
    const name = lineOf(record.row);
    const line = this.#lines.get(name) ?? [];
    this.#lines.set(name, line);
    line.push(record);
    if (line.length === 1) this.#due.add(record);
  }

  #leaveLine(record: DeliveryRecord): void {
    this.#pending.delete(record);
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

/** No owner has a space. */
const urlName = ({ owner, url }: Pick<Delivery, 'owner' | 'url'>): string => `${owner ?? ''} ${url}`;

const lineOf = ({ run_id, url }: Delivery): string => `${run_id} ${url}`;
