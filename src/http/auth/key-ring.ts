import { timingSafeEqual } from 'node:crypto';
import type { Principal } from '../../core/principal.ts';
import { hashOfKey, keyIdOf } from './api-key.ts';
import type { KeyRecord } from './key-records.ts';

interface Entry {
  readonly hash: Buffer;
  /** Epoch, milliseconds. */
  readonly from: number;
  readonly until: number;
  readonly principal: Principal;
}

const dummy: Buffer = Buffer.alloc(32);

/** The API keys that the server accepts now. */
export class KeyRing {
  #entries: ReadonlyMap<string, Entry> = new Map();

  /** Replaces all keys; a key that is missing is refused from now on. */
  replace(records: readonly KeyRecord[]): void {
    this.#entries = new Map(records.map((record) => [record.id, entryOf(record)]));
  }

  /** The principal of a key; undefined where it is unknown, wrong, expired or not yet valid. */
  verify(key: string): Principal | undefined {
    const id = keyIdOf(key);
    if (id === undefined) return undefined;
    const entry = this.#entries.get(id);
    // An unknown id takes the same time as a wrong key.
    const isEqual = timingSafeEqual(hashOfKey(key), entry?.hash ?? dummy);
    if (entry === undefined || !isEqual) return undefined;
    const now = Date.now();
    return entry.from <= now && now < entry.until ? entry.principal : undefined;
  }
}

const entryOf = ({ sha256, principal, tenant, scopes, agents, not_before, expires_at }: KeyRecord): Entry => ({
  hash: Buffer.from(sha256, 'hex'),
  from: not_before === undefined ? 0 : Date.parse(not_before),
  until: expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires_at),
  principal: {
    id: principal,
    kind: 'key',
    ...(tenant !== undefined && { tenant }),
    scopes,
    ...(agents !== undefined && { agents }),
  },
});
