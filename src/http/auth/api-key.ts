import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `rvk_`, an id, 256 random bits and a checksum. Scanners of leaked secrets find keys by this form. */
const form = /^rvk_([0-9A-Za-z]{8})_[0-9A-Za-z]{43}([0-9A-Za-z]{6})$/;
const checksumLength = 6;

export interface ApiKey {
  readonly id: string;
  /** The whole key, which the server does not store. */
  readonly key: string;
}

export function makeApiKey(): ApiKey {
  const id = base62(BigInt(`0x${randomBytes(6).toString('hex')}`), 8);
  const body = `rvk_${id}_${base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)}`;
  return { id, key: body + checksumOf(body) };
}

/** The id of a key; undefined where the text is no key, or has a typing mistake. */
export function keyIdOf(key: string): string | undefined {
  const [, id, checksum] = form.exec(key) ?? [];
  return checksum === checksumOf(key.slice(0, -checksumLength)) ? id : undefined;
}

/** A key has 256 random bits, so a fast hash is enough; a slow one would only let clients exhaust the server. */
export const hashOfKey = (key: string): Buffer => hash('sha256', key, 'buffer');

const checksumOf = (text: string): string => base62(BigInt(crc32(text)), checksumLength);

/** The last `length` digits of a number. */
function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = digits.charAt(Number(rest % 62n)) + text;
  return text;
}
