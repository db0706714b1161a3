import { compareText } from '../../core/collections.ts';
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
} from '../../core/ports/outbox.ts';
import type { WrittenRow } from '../../core/ports/run-store.ts';
import { Sorted } from './sorted.ts';

/** The outbox of a memory store. Lists and removals look at all deliveries that are kept. */
export class MemoryDeliveries implements Outbox {
  readonly #rows = new Map<string, Delivery>();
  /** The ids of the pending deliveries of each line, in order: see `Outbox`. */
  readonly #lines = new Map<string, string[]>();
  /** The first delivery of each line. */
  readonly #due = new Sorted<Delivery>(
    (a, b) => compareText(dueOf(a), dueOf(b)) || compareText(a.delivery_id, b.delivery_id),
  );
  /** By `urlName`. */
  readonly #failures = new Map<string, UrlFailures>();

  has(delivery_id: string): boolean {
    return this.#rows.has(delivery_id);
  }

  add(added: readonly NewDelivery[], run: WrittenRow): void {
    for (const one of added) this.#queue(newDelivery(one, run));
  }

  async claimDeliveries(now: string, until: string, limit: number): Promise<Delivery[]> {
    const due: Delivery[] = [];
    for (const row of this.#due.ascending()) {
      if (due.length >= limit || dueOf(row) > now) break;
      due.push(row);
    }
    return due.map((row) => this.#replaceFirst(row, { ...row, claimed_until: until }));
  }

  async finishDelivery({ delivery_id, claimed_until }: Delivery, result: DeliveryResult): Promise<boolean> {
    const row = this.#rows.get(delivery_id);
    if (row?.state !== 'pending' || row.claimed_until !== claimed_until) return false;
    const name = urlName(row);
    if (result.state === 'delivered') this.#failures.delete(name);
    else if (result.attempted_at !== null)
      this.#failures.set(name, addFailure(this.#failures.get(name), result.attempted_at));
    const finished = finishedDelivery(row, result);
    if (result.state === 'pending') this.#replaceFirst(row, finished);
    else {
      this.#leaveLine(row);
      this.#rows.set(delivery_id, finished);
    }
    return true;
  }

  async delivery(delivery_id: string): Promise<Delivery | undefined> {
    return this.#rows.get(delivery_id);
  }

  async deliveries(filter: DeliveryFilter, before: string | undefined, limit: number): Promise<Delivery[]> {
    const { run_id, owner, state } = filter;
    return [...this.#rows.values()]
      .filter(
        (row) =>
          (run_id === undefined || row.run_id === run_id) &&
          (owner === undefined || row.owner === owner) &&
          (state === undefined || row.state === state) &&
          (before === undefined || row.delivery_id < before),
      )
      .sort((a, b) => compareText(b.delivery_id, a.delivery_id))
      .slice(0, limit);
  }

  async pendingDeliveries(limit: number): Promise<PendingDeliveries> {
    let count = 0;
    let oldest: string | null = null;
    for (const ids of this.#lines.values()) {
      count += ids.length;
      for (const id of ids) if (oldest === null || id < oldest) oldest = id;
    }
    return { count: Math.min(count, limit), oldest };
  }

  async urlFailures(owner: string | null, url: string): Promise<UrlFailures | undefined> {
    return this.#failures.get(urlName({ owner, url }));
  }

  async replayDelivery(delivery_id: string, now: string): Promise<boolean> {
    const row = this.#rows.get(delivery_id);
    if (row === undefined || row.state === 'pending') return false;
    this.#failures.delete(urlName(row));
    this.#queue(replayedDelivery(row, now));
    return true;
  }

  removeOfRuns(run_ids: ReadonlySet<string>): void {
    for (const row of this.#rows.values()) if (run_ids.has(row.run_id)) this.#delete(row);
  }

  removeOfOwner(owner: string): void {
    for (const row of this.#rows.values()) if (row.owner === owner) this.#delete(row);
    for (const name of this.#failures.keys()) if (name.startsWith(`${owner} `)) this.#failures.delete(name);
  }

  /** Deletes the deliveries that are not pending, and the failures of URLs, from before a time. */
  sweep(before: string): void {
    for (const row of this.#rows.values()) if (row.state !== 'pending' && row.created_at < before) this.#delete(row);
    for (const [name, { last_at }] of this.#failures) if (last_at < before) this.#failures.delete(name);
  }

  #delete(row: Delivery): void {
    this.#rows.delete(row.delivery_id);
    if (row.state === 'pending') this.#leaveLine(row);
  }

  /** Adds a pending delivery to the end of its line. */
  #queue(row: Delivery): void {
    this.#rows.set(row.delivery_id, row);
    const line = this.#lines.get(lineOf(row));
    if (line !== undefined) line.push(row.delivery_id);
    else {
      this.#lines.set(lineOf(row), [row.delivery_id]);
      this.#due.add(row);
    }
  }

  /** Replaces the first delivery of a line, which stays the first. Only that one is claimed. */
  #replaceFirst(before: Delivery, after: Delivery): Delivery {
    this.#due.delete(before);
    this.#rows.set(after.delivery_id, after);
    this.#due.add(after);
    return after;
  }

  #leaveLine(row: Delivery): void {
    const line = this.#lines.get(lineOf(row)) ?? [];
    const left = line.filter((id) => id !== row.delivery_id);
    if (left.length === 0) this.#lines.delete(lineOf(row));
    else this.#lines.set(lineOf(row), left);
    if (line[0] !== row.delivery_id) return;
    this.#due.delete(row);
    const next = this.#rows.get(left[0] ?? '');
    if (next !== undefined) this.#due.add(next);
  }
}

/** When a delivery can be claimed. */
const dueOf = ({ claimed_until, next_at }: Delivery): string => claimed_until ?? next_at;

/** No owner has a space. */
const urlName = ({ owner, url }: Pick<Delivery, 'owner' | 'url'>): string => `${owner ?? ''} ${url}`;

const lineOf = ({ run_id, url }: Delivery): string => `${run_id} ${url}`;
