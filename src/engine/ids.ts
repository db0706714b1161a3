import { randomFillSync } from 'node:crypto';

/** Random bytes are asked for rarely: the call costs the same for sixteen and for thousands. */
const pool = Buffer.allocUnsafe(4096);
let used = pool.length;
/** What one takes at most: four for where a millisecond begins to count, six for itself. */
const most = 10;

const text = Buffer.from('00000000-0000-7000-8000-000000000000', 'latin1');
const digits = Buffer.from('0123456789abcdef', 'latin1');
/** Of the 26 bits that count within a millisecond, the first stays free when they begin. */
const counts = 2 ** 26;
let time = 0;
let count = 0;

/**
 * A UUID of version 7, greater than any that this process has made before. A run needs four, and the package of that
 * name takes a microsecond for each, ten times as much.
 */
export function newId(): string {
  if (pool.length - used < most) {
    randomFillSync(pool);
    used = 0;
  }
  const now = Date.now();
  count += 1;
  if (now > time) begin(now);
  else if (count === counts) begin(time + 1);
  write(15, 3, count >>> 14);
  // The first two bits say that it is a UUID.
  write(19, 4, 0x8000 | (count & 0x3fff));
  for (let at = 24; at < 36; at += 2) {
    write(at, 2, pool[used] ?? 0);
    used += 1;
  }
  return text.toString('latin1');
}

function begin(at: number): void {
  time = at;
  count = pool.readUInt32LE(used) >>> 7;
  used += 4;
  write(0, 8, Math.floor(at / 0x10000));
  write(9, 4, at & 0xffff);
}

function write(at: number, length: number, value: number): void {
  let rest = value;
  for (let place = at + length - 1; place >= at; place -= 1) {
    text[place] = digits[rest & 15] ?? 0;
    rest >>>= 4;
  }
}
