import {
  type Delivery,
  type DeliveryFilter,
  type DeliveryResult,
  type NewDelivery,
  newDelivery,
  type Outbox,
  type PendingDeliveries,
  type UrlFailures,
} from '../../core/ports/outbox.ts';
import type { WrittenRow } from '../../core/ports/run-store.ts';
import type { DeliveryState } from '../../schema/webhook.ts';
import { deliveryColumns } from '../delivery-columns.ts';
import type { DeliveryValues } from './delivery-scripts.ts';
import { Keyspace } from './keyspace.ts';
import { score, timestamp } from './scores.ts';

/** A delivery as the commit script reads it. */
export function encodeDelivery(added: NewDelivery, run: WrittenRow): object {
  const row = newDelivery(added, run);
  const fields = deliveryColumns.flatMap((column) => {
    const value = row[column];
    return value === null ? [] : [column, String(value)];
  });
  return {
    id: row.delivery_id,
    url: row.url,
    due: score(row.next_at),
    fields: [...fields, 'age', String(score(row.created_at))],
  };
}

/** The outbox of a Redis store, beside the deliveries that its commits add. */
export class RedisDeliveries extends Keyspace implements Outbox {
  async claimDeliveries(now: string, until: string, limit: number): Promise<Delivery[]> {
    const times = [timestamp(now), timestamp(until), until] as const;
    const found = await this.redis.rivuletClaimDeliveries(...this.keys, ...times, limit);
    return found.map(parseDelivery);
  }

  async finishDelivery({ delivery_id, claimed_until }: Delivery, result: DeliveryResult): Promise<boolean> {
    const { state, status, error } = result;
    const next = result.state === 'pending' ? result.next_at : '';
    const claim = [delivery_id, claimed_until ?? ''] as const;
    const end = [state, status === null ? '' : String(status), error ?? ''] as const;
    const attempted = result.attempted_at ?? '';
    const times = [next, timestamp(next), attempted, timestamp(attempted)] as const;
    const taken = await this.redis.rivuletFinishDelivery(...this.keys, ...claim, ...end, ...times);
    return taken === 1;
  }

  async delivery(delivery_id: string): Promise<Delivery | undefined> {
    const found = await this.redis.hmget(this.keyOf('delivery', delivery_id), ...deliveryColumns);
    return found[0] == null ? undefined : parseDelivery(found);
  }

  async deliveries(filter: DeliveryFilter, before: string | undefined, limit: number): Promise<Delivery[]> {
    const { owner = '', state = '' } = filter;
    const found: Delivery[] = [];
    for (let next = before === undefined ? '+' : `(${before}`; found.length < limit; ) {
      const missing = limit - found.length;
      const set = smallestSet(filter);
      const [last, rows] = await this.redis.rivuletListDeliveries(...this.keys, set, next, missing, owner, state);
      found.push(...rows.map(parseDelivery));
      if (last === '') break;
      next = `(${last}`;
    }
    return found;
  }

  async pendingDeliveries(limit: number): Promise<PendingDeliveries> {
    const set = this.keyOf('deliveries:state:pending');
    const [count, [oldest = null]] = await Promise.all([this.redis.zcard(set), this.redis.zrange(set, '0', '0')]);
    return { count: Math.min(count, limit), oldest };
  }

  async urlFailures(owner: string | null, url: string): Promise<UrlFailures | undefined> {
    const text = await this.redis.hget(this.keyOf('failing', owner ?? ''), url);
    if (text === null) return undefined;
    const [attempts, since = '', last_at = ''] = text.split(' ');
    return { attempts: Number(attempts), since, last_at };
  }

  /** Forgets the failures of a URL, as a delivery to it does that succeeds. */
  async forgetFailures(owner: string | null, url: string): Promise<void> {
    await this.redis.rivuletForgetFailures(...this.keys, owner ?? '', url);
  }

  async replayDelivery(delivery_id: string, now: string): Promise<boolean> {
    return (await this.redis.rivuletReplayDelivery(...this.keys, delivery_id, now, timestamp(now))) === 1;
  }
}

/** The smallest sorted set with all deliveries that match a filter. */
function smallestSet({ run_id, owner, state }: DeliveryFilter): string {
  if (run_id !== undefined) return `deliveries:run:${run_id}`;
  if (owner !== undefined) {
    return state === undefined ? `deliveries:owner:${owner}` : `deliveries:owner-state:${owner}:${state}`;
  }
  return state === undefined ? 'deliveries' : `deliveries:state:${state}`;
}

function parseDelivery(values: DeliveryValues): Delivery {
  const text = (column: keyof Delivery): string | null => values[deliveryColumns.indexOf(column)] ?? null;
  const status = text('last_status');
  return {
    delivery_id: text('delivery_id') ?? '',
    run_id: text('run_id') ?? '',
    owner: text('owner'),
    url: text('url') ?? '',
    target: text('target'),
    type: text('type') ?? '',
    body: text('body') ?? '',
    created_at: text('created_at') ?? '',
    state: parseState(text('state')),
    attempt: Number(text('attempt')),
    next_at: text('next_at') ?? '',
    claimed_until: text('claimed_until'),
    last_status: status === null ? null : Number(status),
    last_error: text('last_error'),
  };
}

const parseState = (text: string | null): DeliveryState =>
  text === 'delivered' || text === 'failed' ? text : 'pending';
