import { createHash, randomBytes } from 'node:crypto';
import { isUuid } from '../schema/formats.ts';

const perMillisecond = 0x1000;

/** The milliseconds of the newest id, its number among the ids of that millisecond, and its first characters. */
let time = 0;
let count = 0;
let head = '';

/** Random hexadecimal digits for the next ids. */
let digits = '';

/** Takes so many of the random digits. */
function random(many: number): string {
  if (digits.length < many) digits = randomBytes(1024).toString('hex');
  const taken = digits.slice(0, many);
  digits = digits.slice(many);
  return taken;
}

/** A time in milliseconds as the first 13 characters of an id. */
function timeOf(milliseconds: number): string {
  const hex = milliseconds.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/**
 * A UUID of version 7. The ids of a process sort in the order of their creation, even if the clock is set back. An id
 * has 48 bits of milliseconds, 12 bits that count within a millisecond (overflow uses the next one), and 62 random bits.
 */
export const newId = (): string => makeId(random(4));

/**
 * A new id that ends like another one, of which a store over several servers keeps the data at the same server: see
 * `Partitions`. An id without that ending gets none.
 */
export const newIdBeside = (other: string): string => makeId(/[0-9a-f]{4}$/.test(other) ? other.slice(-4) : random(4));

/** The next id, with its last four digits. `join` makes one text: what is put together with `+` stays a tree of pieces. */
function makeId(end: string): string {
  const now = Date.now();
  count += 1;
  if (now > time || count === perMillisecond) {
    time = Math.max(now, time + 1);
    count = 0;
    head = timeOf(time);
  }
  const variant = '89ab'.charAt(Number.parseInt(random(1), 16) % 4);
  return [head, `7${count.toString(16).padStart(3, '0')}`, variant + random(3), random(8) + end].join('-');
}

/** Ids that are tried: enough where one in twelve passes. */
const maxTried = 100;

/** A new id that passes; the last one, where none of a hundred does. */
export function newIdWhere(passes: (id: string) => boolean): string {
  let id = newId();
  for (let tried = 1; tried < maxTried && !passes(id); tried += 1) id = newId();
  return id;
}

/**
 * Makes the next ids of this process larger than an id of another process, whose clock may be ahead. The next id starts
 * a new millisecond.
 */
export function passId(id: string): void {
  const other = madeAt(id);
  if (other >= time) [time, count] = [other, perMillisecond - 1];
}

/** The smallest id that a process can make at a time, in milliseconds since 1970. */
export function firstIdAt(milliseconds: number): string {
  return `${timeOf(Math.max(0, Math.floor(milliseconds)))}-7000-8000-000000000000`;
}

/** When a UUID of version 7 was made, in milliseconds since 1970; now, for any other id. */
export function madeAt(id: string): number {
  return id[14] === '7' ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : Date.now();
}

/** The namespace of ids that are derived from texts; chosen once, at random. */
const namespace = Buffer.from('5f0c2a3be7d54b0f9c1e6a84d2f7b913', 'hex');

/** The id of a session that a client calls by a text of its own: a UUID is itself, any other text has one of version 5. */
export function sessionIdFor(text: string): string {
  if (isUuid(text)) return text.toLowerCase();
  const hash = createHash('sha1').update(namespace).update(text).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  return hash.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
