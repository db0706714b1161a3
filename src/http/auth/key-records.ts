import { type Static, Type } from '@sinclair/typebox';
import { canOwn } from '../../core/principal.ts';
import { compile } from '../../core/validate.ts';
import '../../schema/formats.ts';
import { hashOfKey, keyIdOf } from './api-key.ts';

const text = (description: string) => Type.String({ minLength: 1, maxLength: 200, description });
// Scopes are sent in headers, separated by spaces.
const scope = Type.String({ pattern: '^[!#-\\[\\]-~]{1,100}$', description: 'a scope such as runs:write' });
const time = Type.String({ format: 'rivulet:date-time', description: 'a time such as 2027-01-31T00:00:00Z' });

/** What the server knows of a key: its hash, and whose it is. */
export const KeyRecord = Type.Object(
  {
    id: Type.String({ pattern: '^[0-9A-Za-z]{8}$', description: 'the 8 characters after rvk_ of the key' }),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'the SHA-256 of the key in hexadecimal digits' }),
    principal: text('the user of the key; several keys may have the same'),
    tenant: Type.Optional(text('principals of one tenant own their runs together')),
    scopes: Type.Array(scope, { maxItems: 100 }),
    agents: Type.Optional(Type.Array(text('a name of an agent; * stands for any characters'), { maxItems: 1_000 })),
    not_before: Type.Optional(time),
    expires_at: Type.Optional(time),
    note: Type.Optional(Type.String({ maxLength: 1_000 })),
  },
  // A misspelt field, such as `expires`, must not leave a key without an end.
  { additionalProperties: false },
);
export type KeyRecord = Readonly<Static<typeof KeyRecord>>;

const checkAll = compile(Type.Array(KeyRecord, { maxItems: 10_000 }), 'keys');

/** @throws RivuletError `validation_failed` that names the field, or Error that names a key which is there twice */
export function checkKeyRecords(value: unknown): readonly KeyRecord[] {
  const records = checkAll(value ?? []);
  const ids = new Set<string>();
  for (const { id, principal, tenant } of records) {
    if (ids.has(id)) throw new Error(`keys: the id ${id} is there twice; remove one of the records`);
    if (!canOwn({ id: principal, kind: 'key', scopes: [], tenant })) {
      throw new Error(`keys: the principal or the tenant of ${id} is too long, or has half of a character`);
    }
    ids.add(id);
  }
  return records;
}

/** What a key without a scope of its own may do: all that its owner needs. */
export const userScopes = ['agents:read', 'runs:read', 'runs:write', 'sessions:read', 'sessions:write'] as const;

/** The record of a key. */
export const recordOf = (
  key: string,
  { principal, scopes = userScopes }: { principal: string; scopes?: readonly string[] },
): KeyRecord => ({
  id: keyIdOf(key) ?? '',
  sha256: hashOfKey(key).toString('hex'),
  principal,
  scopes: [...scopes],
});

/**
 * The records of `principal=key` pairs, comma-separated, as `RIVULET_API_KEYS` has them. The errors do not repeat keys.
 * @throws Error that says which pair is wrong
 */
export function parseKeyPairs(pairs: string): readonly KeyRecord[] {
  const records = pairs
    .split(',')
    .map((pair) => pair.trim())
    .filter(Boolean)
    .map((pair, index) => {
      const at = pair.lastIndexOf('=');
      const [principal, key] = [pair.slice(0, Math.max(at, 0)).trim(), pair.slice(at + 1).trim()];
      if (principal !== '' && keyIdOf(key) !== undefined) return recordOf(key, { principal });
      throw new Error(`pair ${index + 1}: expected PRINCIPAL=KEY with a key that "rivulet keys new" printed`);
    });
  return checkKeyRecords(records);
}
