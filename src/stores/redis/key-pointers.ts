import { createHash } from 'node:crypto';
import type { Key, Write } from '../../core/ports/run-store.ts';
import { encodeKey, keyField } from './encode-write.ts';
import { Keyspace } from './keyspace.ts';

type KeyName = Pick<Key, 'scope' | 'key'>;
type NewKey = NonNullable<Write['key']>;

/** A key that a run is about to store, or has stored. `former`: the run that stored it before, if another one has. */
export type Pointer = Key & { readonly former?: string };

/** The field of a pointer, beside those of keys: what removes old keys removes it as well. */
const pointerField = ({ scope, key }: KeyName): string => JSON.stringify([scope, key, 'pointer']);

/** An id that belongs to the part with the pointer to a key. */
export const idOfKey = ({ scope, key }: KeyName): string =>
  createHash('sha1')
    .update(JSON.stringify([scope, key]))
    .digest('hex');

/**
 * The pointers in one part of a cluster. A key is stored with its run, in the run's part, which a request that only has the key
 * cannot know. So the key itself decides a part, where a pointer says for which run it was used last.
 */
export class KeyPointers extends Keyspace {
  async find(name: KeyName): Promise<Pointer | undefined> {
    return parse(await this.redis.hget(this.keyOf('keys'), pointerField(name)));
  }

  /** Replaces the pointer `before`, or none. Resolves to the pointer that is there then, which another request may have set. */
  async point(key: NewKey, former: string | undefined, before: Pointer | undefined): Promise<Pointer | undefined> {
    const next = JSON.stringify(encodeKey({ ...key, ...(former && { former }) }, pointerField(key)));
    const replaced = before === undefined ? '' : JSON.stringify(before);
    return parse(await this.redis.rivuletPointKey(...this.keys, next, replaced));
  }

  /**
   * Keeps the commit of a run from storing a key, in the run's part. Resolves to the key where the commit has stored it,
   * and otherwise to undefined: then no later attempt of the commit is taken. A new reply to the run with this key is
   * refused as well, for a day: the key goes to another run only where this one takes no reply any more.
   */
  async refuse(name: KeyName, run_id: string): Promise<Key | undefined> {
    return parse(await this.redis.rivuletRefuseKey(...this.keys, keyField(name), run_id));
  }

  /** Whether the commit of a run was refused, in the run's part. */
  async isRefused(name: KeyName, run_id: string): Promise<boolean> {
    return (await this.redis.exists(this.keyOf('refused', run_id, keyField(name)))) === 1;
  }
}

/** A text of a key; empty or null for none. */
const parse = (text: string | null): Pointer | undefined => (text ? JSON.parse(text) : undefined);
