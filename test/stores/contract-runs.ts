import { describe, expect, it } from 'vitest';
import { fullChars } from '../../src/core/lines.ts';
import { type Outcome, type RunRow, rowAfter, type When, type Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { delivery } from './contract-outbox.ts';
import { append, end, fresh, input, linesOf, messageOf, numbered, type TestWrite } from './writes.ts';

/** Runs and their logs: what every commit of every store does. */
export function runsContract(store: () => Store, name: string): void {
  it('knows no run that was not written', async () => {
    expect(await store().run('unknown')).toBeUndefined();
    expect(await store().input('unknown')).toBeUndefined();
    expect(await store().events('unknown', 0, 10)).toEqual([]);
  });

  it('reads a run, its input and its events as they were written', async () => {
    const write = append(fresh(), ['{"a":1}', '{"b":"ü\\n"}']);
    expect(await store().commit([write])).toEqual(['taken']);
    expect(await store().run(write.row.run_id)).toEqual(write.row);
    expect(await store().input(write.row.run_id)).toEqual(input);
    expect(numbered(await store().events(write.row.run_id, 0, 10))).toEqual([
      [1, '{"a":1}'],
      [2, '{"b":"ü\\n"}'],
    ]);
  });

  it('continues a log where it ended, and replays it from any event', async () => {
    const first = append(fresh(), ['1', '2', '3']);
    const second = append(first.row, ['4', '5']);
    const third = append(second.row, ['6']);
    await store().commit([first]);
    await store().commit([second, third]);
    for (let after = 0; after <= 6; after += 1) {
      const found = numbered(await store().events(first.row.run_id, after, 100)).filter(([seq]) => seq > after);
      expect(found.map(([, line]) => Number(line))).toEqual([1, 2, 3, 4, 5, 6].slice(after));
    }
  });

  it('counts the events of a write: writes share a row while only the log grows', async () => {
    const { row, ...first } = append(fresh(), ['1']);
    const grown = { row, grown: true };
    const writes = [
      { row, ...first },
      { ...grown, expect: 1, lines: ['2'] },
      { ...grown, expect: 2, lines: ['3', '4'], journal: ['{}'] },
      { ...grown, expect: 4, lines: ['5'] },
    ];
    expect(await store().commit(writes)).toEqual(['taken', 'taken', 'taken', 'taken']);
    expect(await store().run(row.run_id)).toEqual({ ...row, last: 5 });
    const asks: Write = { row: { ...row, status: 'awaiting', snapshot: 6 }, expect: 5, lines: ['6'] };
    expect(await store().commit([asks, { ...asks, ...grown, expect: 5 }])).toEqual(['taken', 'fenced']);
    expect(await store().run(row.run_id)).toEqual({ ...asks.row, last: 6 });
    expect(numbered(await store().events(row.run_id, 0, 10)).map(([id]) => id)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('reads a long log page by page', async () => {
    let row = fresh();
    for (let batch = 0; batch < 50; batch += 1) {
      const write = append(row, [`${batch}a`, `${batch}b`]);
      await store().commit([write]);
      row = write.row;
    }
    const seen: number[] = [];
    for (let after = 0; after < 100; ) {
      const page = numbered(await store().events(row.run_id, after, 7));
      expect(page.length).toBeGreaterThan(0);
      expect(page.length).toBeLessThan(20);
      for (const [seq] of page) if (seq > after) seen.push(seq);
      after = seen.at(-1) ?? 0;
    }
    expect(seen).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  it('refuses a write that is not at the end of the log, and changes nothing', async () => {
    const first = append(fresh(), ['1', '2']);
    await store().commit([first]);
    const stale = append({ ...first.row, last: 1 }, ['other'], {
      resources: [
        {
          resource_id: `r-${first.row.run_id}`,
          session_id: 's',
          run_id: null,
          content_type: 'text/plain',
          body: 'x',
        },
      ],
      history: ['/resources/x'],
    });
    const ahead = append({ ...first.row, last: 5 }, ['other']);
    expect(await store().commit([stale])).toEqual(['fenced']);
    expect(await store().commit([ahead])).toEqual(['fenced']);
    expect(await store().run(first.row.run_id)).toEqual(first.row);
    expect(numbered(await store().events(first.row.run_id, 0, 10))).toHaveLength(2);
    expect((await store().resources([`r-${first.row.run_id}`]))[0]).toBeUndefined();
  });

  it('refuses a second run with the id of the first', async () => {
    const write = append(fresh(), ['1']);
    expect(await store().commit([write])).toEqual(['taken']);
    expect(await store().commit([write])).toEqual(['fenced']);
  });

  it('refuses a writer of another epoch', async () => {
    const first = append(fresh({ epoch: 2 }), ['1']);
    await store().commit([first]);
    expect(await store().commit([append({ ...first.row, epoch: 1 }, ['2'])])).toEqual(['fenced']);
    expect(await store().commit([append(first.row, ['2'])])).toEqual(['taken']);
  });

  it('accepts no write after a final status', async () => {
    const first = append(fresh(), ['1']);
    const end = append({ ...first.row, status: 'completed', finished_at: '2026-01-01T00:00:01.000Z' }, ['2']);
    const late = append({ ...end.row, status: 'cancelled' }, ['3']);
    expect(await store().commit([first, end, late])).toEqual(['taken', 'taken', 'fenced']);
    expect((await store().run(first.row.run_id))?.status).toBe('completed');
  });

  it('applies the other writes of a commit in which one is refused', async () => {
    const good = append(fresh(), ['1']);
    const bad = append({ ...fresh(), last: 9 }, ['1']);
    const alsoGood = append(fresh(), ['1']);
    expect(await store().commit([good, bad, alsoGood])).toEqual(['taken', 'fenced', 'taken']);
    expect(await store().run(alsoGood.row.run_id)).toBeDefined();
  });

  it('gives each write of a commit its own outcome, in the order of the writes', async () => {
    const runs = Array.from({ length: 4 }, () => append(fresh(), ['1']));
    await store().commit(runs);
    const [a, b, c, d] = runs.map(({ row }) => row).toReversed() as [RunRow, RunRow, RunRow, RunRow];
    const grown = { grown: true };
    const asks: Write = { row: { ...c, status: 'awaiting' }, expect: 2, lines: ['3'] };
    const writes: Write[] = [
      append(fresh(), ['1']),
      append(a, ['2'], grown),
      append({ ...b, epoch: 2 }, ['other'], grown),
      append(c, ['2'], grown),
      asks,
      append({ ...asks.row, last: 3 }, ['4'], grown),
      append({ ...d, last: 5 }, ['other'], grown),
      append(d, ['2', '3'], grown),
      append({ ...d, last: 3 }, ['4'], grown),
      append(fresh({ last: 1 }), ['2'], grown),
    ];
    const outcomes = ['taken', 'taken', 'fenced', 'taken', 'taken', 'taken', 'fenced', 'taken', 'taken', 'fenced'];
    expect(await store().commit(writes)).toEqual(outcomes);
    const logs = [];
    for (const { run_id } of [a, b, c, d]) logs.push(await linesOf(store(), run_id));
    expect(logs).toEqual([['1', '2'], ['1'], ['1', '2', '3', '4'], ['1', '2', '3', '4']]);
    expect(await store().run(c.run_id)).toEqual({ ...asks.row, last: 4 });
  });

  it('applies a change of status without an event', async () => {
    const first = append(fresh(), ['1']);
    await store().commit([first]);
    expect(await store().commit([{ row: { ...first.row, status: 'cancelling' }, expect: 1, lines: [] }])).toEqual([
      'taken',
    ]);
    expect(await store().run(first.row.run_id)).toEqual({ ...first.row, status: 'cancelling' });
  });

  it('hands a run over to a new epoch, and then refuses the old one', async () => {
    const first = append(fresh(), ['1']);
    await store().commit([first]);
    const taken = { ...first.row, epoch: 2, attempts: 1 };
    expect(await store().commit([{ row: taken, from: 1, expect: 1, lines: [] }])).toEqual(['taken']);
    expect(await store().run(first.row.run_id)).toEqual(taken);
    expect(await store().commit([append(first.row, ['old'])])).toEqual(['fenced']);
    expect(await store().commit([{ row: { ...taken, epoch: 3 }, from: 1, expect: 1, lines: [] }])).toEqual(['fenced']);
    expect(await store().commit([append(taken, ['new'])])).toEqual(['taken']);
  });

  it('keeps a journal in the order in which it was written', async () => {
    const first = append(fresh(), ['1'], { journal: ['{"a":1}'] });
    const second = append(first.row, [], { journal: ['{"b":2}', '{"c":3}'] });
    await store().commit([first]);
    await store().commit([second, append(second.row, ['2'])]);
    expect(await store().journal(first.row.run_id)).toEqual(['{"a":1}', '{"b":2}', '{"c":3}']);
    expect(await store().journal('unknown')).toEqual([]);
  });

  it('accepts a key once, until it is no longer fresh', async () => {
    const key = (hash: string, created_at: string, fresh_from: string, run_id: string) => ({
      scope: 'runs',
      key: `k-${name}`,
      hash,
      run_id,
      after: 0,
      created_at,
      fresh: fresh_from,
    });
    const a = append(fresh(), ['1']);
    const b = append(fresh(), ['1']);
    const keyA = key('a', '2026-01-02', '2026-01-01', a.row.run_id);
    expect(
      await store().commit([
        { ...a, key: keyA },
        { ...b, key: key('b', '2026-01-02', '2026-01-01', b.row.run_id) },
      ]),
    ).toEqual(['taken', 'key_used']);
    expect(await store().run(b.row.run_id)).toBeUndefined();
    expect(await store().key('runs', `k-${name}`)).toMatchObject({ hash: 'a', run_id: a.row.run_id });
    expect(await store().commit([{ ...b, key: key('b', '2026-01-04', '2026-01-03', b.row.run_id) }])).toEqual([
      'taken',
    ]);
    expect(await store().key('runs', `k-${name}`)).toMatchObject({ hash: 'b', run_id: b.row.run_id });
    while (await store().sweep({ keys: '2026-01-05' })) await Promise.resolve();
    expect(await store().key('runs', `k-${name}`)).toBeUndefined();
  });

  it('leaves the key of a refused write free', async () => {
    const first = append(fresh(), ['1']);
    await store().commit([first]);
    const { run_id } = first.row;
    const key = {
      scope: run_id,
      key: 'k',
      hash: 'a',
      run_id,
      after: 1,
      created_at: '2026-01-02',
      fresh: '2026-01-01',
    };
    expect(await store().commit([{ ...append({ ...first.row, last: 5 }, ['2']), key }])).toEqual(['fenced']);
    expect(await store().key(run_id, 'k')).toBeUndefined();
    expect(await store().commit([{ ...append(first.row, ['2']), key }])).toEqual(['taken']);
    expect(await store().key(run_id, 'k')).toMatchObject({ hash: 'a', after: 1 });
  });

  it('removes a final run with its log, its journal and its messages, and keeps the others', async () => {
    const session_id = `removing-${fresh().run_id}`;
    const asked = (row: RunRow): TestWrite => append(row, ['1'], { journal: ['{}'], ...messageOf(row, 'question') });
    const [a, b] = [asked(fresh({ session_id })), asked(fresh({ session_id }))];
    const state = { resource_id: `state-${session_id}`, session_id, run_id: null, content_type: 'a/b', body: '1' };
    await store().commit([a, b, end(a.row, 'completed', { ...messageOf(a.row, 'answer'), state: '/s' })]);
    await store().commit([append(b.row, ['2'], { resources: [state] })]);
    await store().remove(a.row.run_id);
    while (await store().sweep({ keys: '' })) await Promise.resolve();
    expect(await store().run(a.row.run_id)).toBeUndefined();
    expect(await store().input(a.row.run_id)).toBeUndefined();
    expect(await store().events(a.row.run_id, 0, 10)).toEqual([]);
    expect(await store().journal(a.row.run_id)).toEqual([]);
    expect((await store().resources([`question-of-${a.row.run_id}`]))[0]).toBeUndefined();
    expect((await store().resources([`answer-of-${a.row.run_id}`]))[0]).toBeUndefined();
    expect((await store().runs({ session_id }, undefined, 10)).map(({ run_id }) => run_id)).toEqual([b.row.run_id]);
    expect(await store().session(session_id)).toEqual({ session_id, state: '/s', history: b.history });
    expect((await store().resources([`question-of-${b.row.run_id}`]))[0]).toBeDefined();
    expect((await store().resources([state.resource_id]))[0]).toEqual(state);
    expect(await store().journal(b.row.run_id)).toEqual(['{}']);
    expect(numbered(await store().events(b.row.run_id, 0, 10))).toHaveLength(2);
    await store().remove('unknown');
  });

  conditions(store);
  outcomes(store);
  extremes(store);
  targets(store);
}

const when = 'alone' as const;
const queued_at = '2026-01-01T00:00:00.000Z';

/** The write that starts a queued run: the row changes, and nothing is appended. */
const begin = (row: RunRow, when: When): Write => ({
  row: { ...row, queued_at: null },
  expect: row.last,
  lines: [],
  when,
});

/** Writes with a condition on the other runs of their session. */
function conditions(store: () => Store): void {
  describe('a condition on the other runs of a session', () => {
    const session = (): string => `when-${fresh().run_id}`;
    /** Three runs of a session, the oldest first. */
    const three = (session_id = session()): [RunRow, RunRow, RunRow] => [
      fresh({ session_id }),
      fresh({ session_id, queued_at }),
      fresh({ session_id, queued_at }),
    ];

    it('refuses a run that must be alone until the other one is final', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1'], { when });
      const second = append(fresh({ session_id }), ['1'], { when });
      expect(await store().commit([first])).toEqual(['taken']);
      expect(await store().commit([second])).toEqual(['session_busy']);
      const grown = append(first.row, ['2'], { grown: true });
      const queued = append({ ...grown.row, queued_at }, []);
      const awaiting = append({ ...grown.row, status: 'awaiting' }, ['3']);
      for (const write of [grown, queued, awaiting]) {
        expect(await store().commit([write])).toEqual(['taken']);
        expect(await store().commit([second])).toEqual(['session_busy']);
      }
      expect(await store().commit([end(awaiting.row, 'completed')])).toEqual(['taken']);
      expect(await store().commit([second])).toEqual(['taken']);
      expect(await store().unfinished(session_id, '', 10)).toEqual([second.row]);
    });

    it('ignores runs of other sessions, the run itself, and final runs', async () => {
      const session_id = session();
      const over = append(fresh({ session_id, status: 'failed', finished_at: queued_at }), ['1']);
      const never = append(fresh({ session_id, queued_at }), ['1']);
      const elsewhere = append(fresh({ session_id: `${session_id}-too` }), ['1']);
      await store().commit([over, never, elsewhere, end(never.row, 'cancelled')]);
      let { row } = append({ ...fresh({ session_id }), last: -1 }, ['1']);
      for (const when of ['alone', 'first', 'last', 'alone'] as const) {
        const write = append(row, ['1'], { when });
        expect(await store().commit([write])).toEqual(['taken']);
        row = write.row;
      }
      expect(await store().commit([append(row, ['2'], { when, grown: true })])).toEqual(['taken']);
      expect(await store().run(row.run_id)).toEqual({ ...row, last: 5 });
    });

    it('starts the oldest unfinished run of a session, and no other', async () => {
      const [a, b, c] = three().map((row) => append(row, ['1'], { when: 'first' }));
      if (!a || !b || !c) throw new Error('three rows make three writes');
      // The youngest run is created first, when there is no older one. A younger run does not block an older one.
      expect(await store().commit([c, b, a])).toEqual(['taken', 'taken', 'taken']);
      expect(await store().commit([begin(b.row, 'first'), begin(c.row, 'first')])).toEqual([
        'session_busy',
        'session_busy',
      ]);
      expect(await store().run(b.row.run_id)).toEqual(b.row);
      const begins = [begin(c.row, 'first'), end(a.row, 'failed'), begin(c.row, 'first'), begin(b.row, 'first')];
      expect(await store().commit(begins)).toEqual(['session_busy', 'taken', 'session_busy', 'taken']);
      expect(await store().run(b.row.run_id)).toEqual({ ...b.row, queued_at: null });
      const { session_id } = a.row;
      expect(await store().commit([append(fresh({ session_id }), ['1'], { when: 'first' })])).toEqual(['session_busy']);
    });

    it('accepts the youngest unfinished run of a session, and no other', async () => {
      const [a, b, c] = three();
      const [first, second, third] = [a, b, c].map((row) => append(row, ['1'], { when: 'last' }));
      if (!first || !second || !third) throw new Error('three rows make three writes');
      expect(await store().commit([first, third, second])).toEqual(['taken', 'taken', 'session_busy']);
      expect(await store().run(b.run_id)).toBeUndefined();
      expect(await store().commit([begin(first.row, 'last'), end(third.row, 'cancelled'), second])).toEqual([
        'session_busy',
        'taken',
        'taken',
      ]);
      expect(await store().commit([append(first.row, ['2'], { when: 'last' })])).toEqual(['session_busy']);
      expect(await store().commit([end(first.row, 'failed', { when: 'last' })])).toEqual(['session_busy']);
      expect(await store().run(a.run_id)).toEqual(first.row);
    });

    it('does not apply to a write without one', async () => {
      const [a, b, c] = three();
      const [first, second, third] = [a, b, c].map((row) => append(row, ['1']));
      if (!first || !second || !third) throw new Error('three rows make three writes');
      const { when: _, ...begun } = begin(third.row, 'first');
      expect(await store().commit([first, second, third, begun])).toEqual(['taken', 'taken', 'taken', 'taken']);
      expect(await store().commit([append(first.row, ['2'])])).toEqual(['taken']);
    });

    it('keeps nothing of a refused run, and the other writes of its commit', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      await store().commit([first]);
      const row = fresh({ session_id, agent_name: session_id, due: '2000-01-01T00:00:00.000Z' });
      const { run_id } = row;
      const stamp = { hash: 'h', after: 0, created_at: '2026-01-02', fresh: '2026-01-01' };
      const key = { scope: session_id, key: 'k', run_id, ...stamp };
      const refused = append(row, ['1'], { when, key, journal: ['{}'], state: '/s', ...messageOf(row, 'question') });
      const before = append(fresh({ session_id: `${session_id}-too` }), ['1'], { when });
      const after = append(fresh(), ['1'], { key: { ...key, key: 'l' }, history: ['/after'] });
      const ended = end(refused.row, 'completed', { ended: { tokens: 1, seconds: 1 } });
      const outcomes = await store().commit([before, refused, ended, after]);
      expect(outcomes).toEqual(['taken', 'session_busy', 'fenced', 'taken']);
      expect(await store().run(run_id)).toBeUndefined();
      expect(await store().input(run_id)).toBeUndefined();
      expect(await store().events(run_id, 0, 10)).toEqual([]);
      expect(await store().journal(run_id)).toEqual([]);
      expect(await store().key(key.scope, 'k')).toBeUndefined();
      expect(await store().resources([`question-of-${run_id}`])).toEqual([undefined]);
      expect((await store().session(session_id))?.history ?? []).toEqual([]);
      expect((await store().session(session_id))?.state ?? null).toBeNull();
      expect(await store().figures([session_id])).toEqual([]);
      expect(await store().due('2000-01-01T00:00:00.000Z', 10)).toEqual([]);
      expect(await store().runs({ session_id }, undefined, 10)).toEqual([first.row]);
      expect(await store().run(before.row.run_id)).toEqual(before.row);
      expect(await store().key(key.scope, 'l')).toMatchObject({ run_id });
      expect((await store().session(after.row.session_id))?.history).toEqual(['/after']);
    });

    it('keeps the former value of a key when it refuses the run with that key', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      const key = { scope: session_id, key: 'k', hash: 'old', run_id: first.row.run_id, after: 0 };
      await store().commit([{ ...first, key: { ...key, created_at: '2026-01-02', fresh: '2026-01-01' } }]);
      const second = append(fresh({ session_id }), ['1'], { when });
      const late = { ...key, hash: 'new', run_id: second.row.run_id, created_at: '2026-01-04', fresh: '2026-01-03' };
      expect(await store().commit([{ ...second, key: late }])).toEqual(['session_busy']);
      expect(await store().key(session_id, 'k')).toMatchObject({ hash: 'old', run_id: first.row.run_id });
    });

    it('sees the writes of one commit in their order', async () => {
      const [session_id, other] = [session(), session()];
      const [first, second, third] = three(session_id).map((row) => append(row, ['1'], { when }));
      if (!first || !second || !third) throw new Error('three rows make three writes');
      const elsewhere = append(fresh({ session_id: other }), ['1'], { when });
      const writes = [third, first, elsewhere, end(third.row, 'completed'), second, begin(second.row, 'alone'), first];
      const outcomes = await store().commit(writes);
      expect(outcomes).toEqual(['taken', 'session_busy', 'taken', 'taken', 'taken', 'taken', 'session_busy']);
      expect(await store().unfinished(session_id, '', 10)).toEqual([{ ...second.row, queued_at: null }]);
      expect((await store().run(third.row.run_id))?.status).toBe('completed');
    });

    it('accepts a new run after the earlier ones were removed with their session', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      await store().commit([first, end(first.row, 'completed')]);
      expect(await store().removeSession(session_id)).toBe(true);
      expect(await store().commit([append(fresh({ session_id }), ['1'], { when })])).toEqual(['taken']);
    });
  });
}

const times = { created_at: '2026-01-02', fresh: '2026-01-01' };

/** A write with an Idempotency-Key of that scope. */
const keyed = (row: RunRow, scope: string): TestWrite => ({
  ...append(row, ['1'], { ...messageOf(row, 'question'), journal: ['{}'] }),
  key: { scope, key: 'k', hash: 'h', run_id: row.run_id, after: 0, ...times },
});

/** Values that some stores can keep and others cannot. */
const odd: readonly [name: string, write: () => TestWrite][] = [
  ['a NUL character in the agent’s name', () => append(fresh({ agent_name: 'a\0b' }), ['1'])],
  ['an agent’s name of 10,000 characters', () => append(fresh({ agent_name: unlike(10_000) }), ['1'])],
  ['a session’s id of 10,000 characters', () => append(fresh({ session_id: unlike(10_000) }), ['1'], { history: [] })],
  ['half of a surrogate pair in a session’s id', () => append(fresh({ session_id: 'a\ud800' }), ['1'])],
  ['a NUL character in an event', () => append(fresh(), ['"\0"'])],
  ['half of a surrogate pair in an event', () => append(fresh(), ['"\udc00"'])],
  ['a NUL character in the journal', () => append(fresh(), ['1'], { journal: ['"\0"'] })],
  [
    'a NUL character in the input',
    () => append(fresh(), ['1'], { input: [{ ...input[0], role: 'user', parts: [part('\0')] }] }),
  ],
  ['a NUL character in a message', () => append(fresh(), ['1'], resource({ body: '"\0\ud800"' }))],
  ['a NUL character in a content type', () => append(fresh(), ['1'], resource({ content_type: 'a/\0' }))],
  ['a NUL character in the URL of a state', () => append(fresh(), ['1'], { state: 'https://a/\0' })],
  ['a URL of 20,000 characters', () => append(fresh(), ['1'], { history: [`https://a/${unlike(20_000)}`] })],
  ['a NUL character in a key', () => ({ ...keyed(fresh(), 'a\0b') })],
  ['a key of 10,000 characters', () => ({ ...keyed(fresh(), unlike(10_000)) })],
  ['a resource that exists already', () => append(fresh(), ['1'], resource({ resource_id: 'twice' }))],
  ['a due time that is none', () => append(fresh({ due: 'never\0' }), ['1'])],
];

/** Text that does not compress. */
function unlike(length: number): string {
  let text = '';
  while (text.length < length) text += fresh().run_id.slice(14) + Math.random().toString(36).slice(2);
  return text.slice(0, length);
}

const part = (content: string) => ({ content_type: 'text/plain', content });

const resource = (more: { resource_id?: string; body?: string; content_type?: string }): Partial<Write> => ({
  resources: [
    {
      resource_id: fresh().run_id,
      session_id: 's',
      run_id: null,
      content_type: 'application/json',
      body: '1',
      ...more,
    },
  ],
});

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

const isRejected = (outcome: Outcome | undefined): boolean => typeof outcome === 'object' && 'rejected' in outcome;

/** The outcomes of a commit, and the independence of its writes. */
function outcomes(store: () => Store): void {
  describe('the outcomes of a commit', () => {
    it('come without a change of the writes themselves, of which their caller keeps lists', async () => {
      const created = keyed(fresh(), `frozen-${fresh().run_id}`);
      const grown = append({ ...created.row, epoch: 1 }, ['2', '3'], {
        ...messageOf(created.row, 'answer'),
        ...resource({}),
        journal: ['{}', '{}'],
        state: '/resources/none',
      });
      const ended = end(grown.row, 'completed', { ended: { tokens: 1, seconds: 1 } });
      for (const write of [created, grown, ended]) {
        expect(await store().commit([frozen(write)])).toEqual(['taken']);
      }
    });

    it('are in the order of the writes, and only applied writes change anything', async () => {
      const session_id = `outcomes-${fresh().run_id}`;
      const begun = append(fresh({ session_id }), ['1']);
      const first = keyed(fresh(), session_id);
      await store().commit([begun, first]);
      const again = keyed(fresh({ agent_name: session_id }), session_id);
      const stale = append({ ...begun.row, epoch: 9 }, ['2'], { history: ['/stale'] });
      const busy = append(fresh({ session_id }), ['1'], { when: 'alone', history: ['/busy'] });
      const good = append(fresh(), ['1']);
      expect(await store().commit([again, stale, good, busy])).toEqual(['key_used', 'fenced', 'taken', 'session_busy']);
      for (const { row } of [again, busy]) {
        expect(await store().run(row.run_id)).toBeUndefined();
        expect(await store().input(row.run_id)).toBeUndefined();
        expect(await store().events(row.run_id, 0, 10)).toEqual([]);
        expect(await store().journal(row.run_id)).toEqual([]);
      }
      expect(await store().resources([`question-of-${again.row.run_id}`])).toEqual([undefined]);
      expect((await store().session(again.row.session_id))?.history ?? []).toEqual([]);
      expect((await store().session(session_id))?.history ?? []).toEqual([]);
      expect(await store().runs({ agent_name: session_id }, undefined, 10)).toEqual([]);
      expect(await store().key(session_id, 'k')).toMatchObject({ run_id: first.row.run_id });
      expect(await store().run(begun.row.run_id)).toEqual(begun.row);
      expect(await store().run(good.row.run_id)).toEqual(good.row);
      expect(await store().count(session_id)).toBe(1);
    });

    it('keep the sums of an agent finite, whatever figures its runs report', async () => {
      const agent_name = `sums-${fresh().run_id}`;
      const other = `${agent_name}-too`;
      const huge = (): TestWrite[] => {
        const first = append(fresh({ agent_name }), ['1']);
        return [first, end(first.row, 'completed', { ended: { tokens: 1.7e308, seconds: 1.7e308 } })];
      };
      const usual = append(fresh({ agent_name: other }), ['1']);
      const writes = [...huge(), ...huge(), usual, end(usual.row, 'completed', { ended: { tokens: 2, seconds: 1 } })];
      expect(await store().commit(writes)).toEqual(Array(6).fill('taken'));
      expect(await store().commit(huge())).toEqual(['taken', 'taken']);
      const [sums] = await store().figures([agent_name]);
      expect(sums?.completed).toBe(3);
      for (const sum of [sums?.tokens, sums?.seconds]) {
        expect(sum).toBeGreaterThanOrEqual(1.7e308);
        expect(sum).toBeLessThan(Number.POSITIVE_INFINITY);
      }
      expect(await store().figures([other])).toEqual([
        { agent_name: other, completed: 1, failed: 0, tokens: 2, seconds: 1 },
      ]);
    });

    it.for(odd)('are taken or rejected for %s, and taken for the other writes', async ([, write]) => {
      await store().commit([append(fresh(), ['1'], resource({ resource_id: 'twice' }))]);
      const running = append(fresh(), ['1']);
      await store().commit([running]);
      const one = write();
      const before = append(running.row, ['2'], { grown: true });
      const after = append(fresh(), ['1'], { history: ['/after'] });
      const outcomes = await store().commit([before, one, after]);
      expect([outcomes[0], outcomes[2]]).toEqual(['taken', 'taken']);
      if (outcomes[1] === 'taken') {
        expect((await store().run(one.row.run_id))?.last).toBe(1);
      } else {
        expect(isRejected(outcomes[1])).toBe(true);
        expect(await store().run(one.row.run_id)).toBeUndefined();
        expect(await store().events(one.row.run_id, 0, 10)).toEqual([]);
        expect(await store().journal(one.row.run_id)).toEqual([]);
      }
      const more = append(before.row, ['3'], { grown: true });
      expect(await store().commit([more])).toEqual(['taken']);
      expect(numbered(await store().events(more.row.run_id, 0, 10))).toHaveLength(3);
      expect((await store().session(after.row.session_id))?.history).toEqual(['/after']);
      const unfinished = await store().unfinished(undefined, running.row.run_id, 1000);
      expect(unfinished.map(({ run_id }) => run_id)).toContain(after.row.run_id);
      expect(await store().due('2025-12-31T00:00:00.000Z', 10)).toEqual([]);
    });
  });
}

/** Large and unusual values. */
function extremes(store: () => Store): void {
  it('replays long lines from any event', async () => {
    const lines = Array.from({ length: 20 }, (_, n) => `"${n}${'ü'.repeat(9_000)}"`);
    const first = append(fresh(), lines.slice(0, 3));
    let row = first.row;
    const rest = lines.slice(3).map((line) => {
      const write = append(row, [line]);
      row = write.row;
      return write;
    });
    await store().commit([first, ...rest]);
    for (const after of [0, 1, 2, 3, 10, 19]) {
      const seen: string[] = [];
      for (let cursor = after; cursor < 20; cursor = after + seen.length) {
        const page = numbered(await store().events(row.run_id, cursor, 1000)).filter(([seq]) => seq > cursor);
        expect(page.length).toBeGreaterThan(0);
        seen.push(...page.map(([, line]) => line));
      }
      expect(seen).toEqual(lines.slice(after));
    }
    expect(await store().events(row.run_id, 20, 1000)).toEqual([]);
  });

  it('begins a page with each long event, which readers of all positions before it share', async () => {
    const long = `"${'x'.repeat(fullChars)}"`;
    let row = fresh({ status: 'in-progress' });
    for (const lines of [['1'], ['2', '3'], [long], ['5'], ['6']]) {
      const write = append(row, lines, row.last === 0 ? {} : { grown: true });
      expect(await store().commit([write])).toEqual(['taken']);
      row = write.row;
    }
    const last = { ...end(row, 'cancelled'), lines: [long] };
    expect(await store().commit([last])).toEqual(['taken']);
    const pages = [0, 1, 2, 3, 4, 5, 6].map((after) => store().events(row.run_id, after, 1_000));
    const unread = (await Promise.all(pages)).map((page, after) => numbered(page).filter(([id]) => id > after));
    expect(unread.map((page) => page[0])).toEqual(
      ['1', '2', '3', long, '5', '6', long].map((line, index) => [index + 1, line]),
    );
    expect(unread.flatMap((page) => page.slice(1)).filter(([, line]) => line === long)).toEqual([]);
  });

  it('accepts commits of any size', async () => {
    for (let n = 0; n < 3; n += 1) expect(await store().commit([])).toEqual([]);
    const big = append(fresh(), [`"${'x'.repeat(5_000_000)}"`]);
    const many = Array.from({ length: 1_200 }, () => append(fresh(), ['1']));
    expect(await store().commit([big, ...many])).toEqual(Array(1_201).fill('taken'));
    expect((await store().events(big.row.run_id, 0, 1))[0]?.lines[0]).toHaveLength(5_000_002);
    expect((await store().run(many.at(-1)?.row.run_id ?? ''))?.last).toBe(1);
  });

  it('keeps a URL that no server could store from harming other writes', async () => {
    const odd = append(fresh(), ['1'], {
      history: ['http://a/\0', 'http://b/\ud800', `http://a/${'x'.repeat(9_000)}`],
    });
    const other = append(fresh(), ['1']);
    expect(await store().commit([odd, other])).toEqual(['taken', 'taken']);
    const { history } = (await store().session(odd.row.session_id)) ?? {};
    expect(history).toHaveLength(3);
    expect(history?.[2]).toHaveLength(9_009);
  });
}

/** The targets of a run, which nodes change beside the writes of its execution. */
function targets(store: () => Store): void {
  const [one, two] = ['[{"url":"https://a"}]', '[{"url":"https://a"},{"url":"https://b é"}]'];

  describe('the targets of a run', () => {
    it('are those of the write that created it', async () => {
      const first = append(fresh({ targets: one }), ['1']);
      await store().commit([first]);
      expect(await store().run(first.row.run_id)).toEqual(first.row);
      expect(await store().runs({ session_id: first.row.session_id }, undefined, 1)).toEqual([first.row]);
    });

    it('are replaced, where they are as the caller read them', async () => {
      const { row } = append(fresh(), ['1']);
      await store().commit([append({ ...row, last: 0 }, ['1'])]);
      expect(await store().compareAndSet(row.run_id, 'targets', one, two)).toBe(false);
      expect(await store().compareAndSet(row.run_id, 'targets', null, one)).toBe(true);
      expect(await store().compareAndSet(row.run_id, 'targets', null, two)).toBe(false);
      expect(await store().compareAndSet(row.run_id, 'targets', one, two)).toBe(true);
      expect((await store().run(row.run_id))?.targets).toBe(two);
      expect(await store().compareAndSet(row.run_id, 'targets', two, null)).toBe(true);
      expect(await store().run(row.run_id)).toEqual(row);
      expect(await store().compareAndSet('unknown', 'targets', null, one)).toBe(false);
      expect(await store().run('unknown')).toBeUndefined();
    });

    it('are found by the next write that changes more than the log, which is repeated with them', async () => {
      const first = append(fresh(), ['1']);
      await store().commit([first]);
      const { run_id } = first.row;
      await store().compareAndSet(run_id, 'targets', null, one);
      const deliveries = [delivery(1)];
      const stale = end(first.row, 'completed', { deliveries, journal: ['"j"'] });
      const next = append(stale.row, ['3'], { grown: true });
      expect(await store().commit([stale, next])).toEqual([{ targets: one }, 'fenced']);
      expect(await store().run(run_id)).toEqual({ ...first.row, targets: one });
      expect(await store().journal(run_id)).toEqual([]);
      expect(await store().outbox.deliveries({ run_id }, undefined, 5)).toEqual([]);
      await store().compareAndSet(run_id, 'targets', one, null);
      expect(await store().commit([{ ...stale, row: { ...stale.row, targets: one } }])).toEqual([{ targets: null }]);
      expect(await store().commit([stale])).toEqual(['taken']);
      expect(await store().outbox.deliveries({ run_id }, undefined, 5)).toMatchObject([{ target: null }]);
      await store().remove(run_id);
    });

    it('are not what fences a write: of another epoch, another end or a final run it is fenced', async () => {
      const first = append(fresh(), ['1']);
      await store().commit([first]);
      const { run_id } = first.row;
      await store().compareAndSet(run_id, 'targets', null, one);
      const late = end(first.row, 'completed');
      const other = { ...late, row: { ...late.row, epoch: 5 } };
      const ahead = end({ ...first.row, last: 7 }, 'completed');
      expect(await store().commit([other, ahead])).toEqual(['fenced', 'fenced']);
      expect(await store().commit([{ ...late, row: { ...late.row, targets: one } }])).toEqual(['taken']);
      expect(await store().commit([late])).toEqual(['fenced']);
      await store().remove(run_id);
    });

    it('do not stop a write that appends only, or that has no events, and stay as they are', async () => {
      const first = append(fresh(), ['1']);
      await store().commit([first]);
      const { run_id } = first.row;
      await store().compareAndSet(run_id, 'targets', null, one);
      const grown = append(first.row, ['2'], { grown: true });
      expect(await store().commit([grown])).toEqual(['taken']);
      const changed = { row: { ...grown.row, attempts: 3 }, expect: 2, lines: [] };
      expect(await store().commit([changed])).toEqual(['taken']);
      expect(await store().run(run_id)).toEqual({ ...changed.row, targets: one });
    });

    it('change while another execution has the run, and when it is final', async () => {
      const first = append(fresh(), ['1']);
      await store().commit([first]);
      const { run_id } = first.row;
      const taken = append({ ...first.row, epoch: 2 }, ['2'], { from: 1 });
      await store().commit([taken]);
      expect(await store().compareAndSet(run_id, 'targets', null, one)).toBe(true);
      const last = end({ ...taken.row, targets: one }, 'failed', { deliveries: [delivery(1, { target: 'a' })] });
      expect(await store().commit([last])).toEqual(['taken']);
      expect(await store().outbox.deliveries({ run_id }, undefined, 5)).toMatchObject([{ target: 'a' }]);
      expect(await store().compareAndSet(run_id, 'targets', one, null)).toBe(true);
      expect((await store().run(run_id))?.targets).toBeNull();
      await store().remove(run_id);
    });

    it('are apart from the nodes that have readers of the run, which no write sees or changes', async () => {
      const first = append(fresh({ targets: one }), ['1']);
      await store().commit([first]);
      const { run_id, agent_name } = first.row;
      const nodes = '[{"id":"a"}]';
      expect(await store().compareAndSet(run_id, 'readers', null, nodes)).toBe(true);
      expect(await store().compareAndSet(run_id, 'readers', null, '[]')).toBe(false);
      const changed = end(first.row, 'failed');
      expect(await store().commit([changed])).toEqual(['taken']);
      const row = { ...rowAfter(changed), readers: nodes };
      expect(await store().run(run_id)).toEqual(row);
      const filter = { agent_names: [agent_name], statuses: ['failed'], since: row.status_at } as const;
      expect(await store().runsByStatusTime(filter, undefined, 1)).toEqual([row]);
      expect(await store().compareAndSet(run_id, 'readers', nodes, null)).toBe(true);
      expect(await store().run(run_id)).toEqual(rowAfter(changed));
      await store().remove(run_id);
    });

    it('are gone with the run', async () => {
      const first = append(fresh({ targets: one }), ['1']);
      await store().commit([first]);
      await store().commit([end(first.row, 'completed')]);
      expect(await store().remove(first.row.run_id)).toBe(true);
      expect(await store().compareAndSet(first.row.run_id, 'targets', one, two)).toBe(false);
      expect(await store().run(first.row.run_id)).toBeUndefined();
    });
  });
}
