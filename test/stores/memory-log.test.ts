import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encode } from '../../src/core/encode.ts';
import { MemoryLog } from '../../src/stores/memory/log.ts';
import { anyText } from '../support/unicode.ts';

const token = (content: string): string =>
  encode({ type: 'message.part', part: { content_type: 'text/plain', content } });

const line = fc.oneof(
  anyText().map(token),
  fc.string({ minLength: 1_000, maxLength: 3_000 }).map(token),
  fc.json().map((json) => JSON.stringify({ type: 'generic', generic: JSON.parse(json) })),
);

it('returns the events after any of them, packed or not, up to a limit', () => {
  const writes = fc.array(fc.array(line, { maxLength: 40 }), { maxLength: 8 });
  fc.assert(
    fc.property(writes, fc.nat(200), fc.integer({ min: 1, max: 200 }), (all, after, limit) => {
      const log = new MemoryLog();
      for (const lines of all) log.append(lines);
      const read: string[] = [];
      // A page ends before a long pack, also where the limit is not reached.
      for (let page = log.after(after, limit); page.length > 0 && read.length < limit; ) {
        for (const { first, lines } of page) {
          expect(first).toBe(after + read.length + 1);
          read.push(...lines);
        }
        page = log.after(after + read.length, limit - read.length);
      }
      expect(read).toEqual(all.flat().slice(after, after + limit));
    }),
  );
});
