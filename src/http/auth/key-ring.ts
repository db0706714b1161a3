import { timingSafeEqual } from 'node:crypto';
import type { Principal } from '../../core/principal.ts';
import { hashOfKey, keyIdOf } from './api-key.ts';
import type { KeyRecord } from './key-records.ts';

interface Entry {
  /** The record as JSON. */
  readonly text: string;
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
  #byPrincipal: ReadonlyMap<Principal, Entry> = new Map();

  /** Replaces all keys; a key that is missing is refused from now on. A key whose record is the same keeps its principal. */
  replace(records: readonly KeyRecord[]): void {
    const before = this.#entries;
    const entries = records.map((record): [string, Entry] => {
      const text = JSON.stringify(record);
      const known = before.get(record.id);
      return [record.id, known?.text === text ? known : entryOf(record, text)];
    });
    this.#entries = new Map(entries);
    this.#byPrincipal = new Map(entries.map(([, entry]) => [entry.principal, entry]));
  }

  /** The principal of a key; undefined where it is unknown, wrong, expired or not yet valid. */
  verify(key: string): Principal | undefined {
    const id = keyIdOf(key);
    if (id === undefined) return undefined;
    const entry = this.#entries.get(id);
    // An unknown id takes the same time as a wrong key.
    const isEqual = timingSafeEqual(hashOfKey(key), entry?.hash ?? dummy);
    if (entry === undefined || !isEqual) return undefined;
    return isValid(entry) ? entry.principal : undefined;
  }

  /** Whether the key of a principal that `verify` has returned is still there, with the same record, and valid. */
  holds(principal: Principal): boolean {
    const entry = this.#byPrincipal.get(principal);
    return entry !== undefined && isValid(entry);
  }
}

function isValid({ from, until }: Entry): boolean {
  const now = Date.now();
  return from <= now && now < until;
}

const entryOf = (
  { sha256, principal, tenant, scopes, agents, not_before, expires_at }: KeyRecord,
  text: string,
): Entry => ({
  text,
  hash: Buffer.from(sha256, 'hex'),
  from: not_before === undefined ? 0 : Date.parse(not_before),
  until: expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires_at),
  principal: { id: principal, kind: 'key', tenant, scopes, agents },
});
