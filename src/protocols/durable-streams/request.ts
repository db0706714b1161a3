import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { fail, type RivuletError } from '../../core/errors.ts';

/** What a request reads. Other members of the query, such as a stream ticket, are not this protocol's. */
const Query = Type.Object({
  offset: Type.Optional(Type.String()),
  live: Type.Optional(Type.Union([Type.Literal('long-poll'), Type.Literal('sse')])),
  cursor: Type.Optional(Type.String()),
});

export interface ReadRequest {
  /** The number of the last event that the client has, or `now`: all that there are. */
  readonly after: number | 'now';
  /** Absent: the events so far. */
  readonly live?: NonNullable<Static<typeof Query>['live']>;
  /** The cursor for this answer. */
  readonly cursor: string;
}

/** @throws RivuletError `bad_request` that names the parameter */
export function readRequestOf(query: unknown, now = Date.now()): ReadRequest {
  if (!Value.Check(Query, query)) {
    const path = Value.Errors(Query, query).First()?.path ?? '';
    if (path === '/offset') throw wrongOffset('several');
    throw fail(
      'bad_request',
      `${path.slice(1)}: expected live=long-poll, live=sse or no live, and each parameter once.`,
    );
  }
  const { offset, live, cursor } = query;
  // A default would let a client that has lost its offset read everything again, at every reconnect.
  if (live !== undefined && offset === undefined) throw wrongOffset('none');
  return { after: afterOf(offset ?? '-1'), ...(live && { live }), cursor: cursorAfter(cursor, now) };
}

/** Digits of an offset: offsets of a stream sort as texts. */
const digits = 16;

/** The offset after an event. */
export const offsetAfter = (n: number): string => `${n}`.padStart(digits, '0');

function afterOf(offset: string): number | 'now' {
  if (offset === 'now') return 'now';
  if (offset === '-1') return 0;
  if (!new RegExp(`^0\\d{${digits - 1}}$`).test(offset)) throw wrongOffset(offset);
  return Number(offset);
}

/** The error for an offset that is none, or none of this stream. */
export const wrongOffset = (got: string): RivuletError =>
  fail('bad_request', `offset: expected -1, now, or a Stream-Next-Offset of this stream; got ${got.slice(0, 100)}.`);

/** Cursors count intervals of 20 seconds from this time on; both are the protocol's. */
const [epoch, interval] = [Date.UTC(2024, 9, 9), 20_000];

/** Caches tell requests apart by their cursors, so a client gets a larger one than it has sent. */
function cursorAfter(sent: string | undefined, now: number): string {
  const current = Math.floor((now - epoch) / interval);
  const before = sent !== undefined && /^\d{1,15}$/.test(sent) ? Number(sent) : -1;
  return `${Math.max(current, before + 1)}`;
}
