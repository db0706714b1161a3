import { BoxedMap } from '../../core/collections.ts';
import { charsOf, fullChars } from '../../core/lines.ts';
import type { Batch, RunRow, Write } from '../../core/store.ts';
import { packLines, unpackLines } from '../packed-lines.ts';
import type { Statements } from './statements.ts';

/**
 * Commits, and characters, above which the log moves events to rows of their own. A start after a crash reads as many.
 */
const maxCommits = 4096;
const maxChars = 4 * 1024 * 1024;
/** Old commits that are deleted at a time. */
const trimBatch = 256;

/** A run that is being written. Its newest events and their journal entries are in the commit log only. */
export interface ActiveRun {
  readonly run_id: string;
  readonly epoch: number;
  /** The number of its session. */
  readonly session: number;
  /** Id of its last event, and of the last one with a row of its own. */
  last: number;
  lastStored: number;
  /** The oldest commit with events that have no row of their own. */
  since: number;
  /**
   * The events after `lastStored`. The packed lines of a write are one text, because the garbage collector copies each
   * string.
   */
  texts: string[];
  journal: string[];
  chars: number;
}

/**
 * The log of commits: all events of a commit, of whatever runs, are one row. With a row for each run, a commit would
 * write a page for each run, since the rows of a run lie together. That takes 35 µs, most of the cost of a token where
 * many runs stream at a model's pace.
 * A run's events move to rows of their own when there are enough of them, before a long write, when another column of the
 * run changes, or when the log gets long. Until then they are in memory and in this log, which is read after a crash. The
 * file belongs to one process, so the ends of runs' logs are known in memory.
 * Methods that write must be called in a transaction; after a failed one, `recover` reads the file again. Methods that
 * read write nothing, so that a full disk delays no reader.
 */
export class CommitLog {
  readonly #sql: Statements;
  readonly #active = new BoxedMap<ActiveRun>();
  /** The runs with events that are only in this log, the oldest first. */
  readonly #pending = new BoxedMap<ActiveRun>();
  #position = 0;
  #oldest = 1;
  #chars = 0;
  #body = '';

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Reads the file, at the start and after a failed transaction. Writes nothing. */
  recover(): void {
    this.#active.clear();
    this.#pending.clear();
    this.#chars = 0;
    this.#body = '';
    this.#position = 0;
    this.#oldest = 1;
    for (const { position, body } of this.#sql.commits.all()) {
      this.#position = position - 1;
      for (const entry of parse(body)) this.#restore(entry);
      this.#position = position;
    }
  }

  /** Appends at least one event, and changes nothing else. Returns false where the write is fenced. */
  append({ row: { run_id, epoch }, expect, lines, journal = [] }: Write): boolean {
    const run = this.#findOrRead(run_id);
    if (run === undefined || run.last !== expect || run.epoch !== epoch) return false;
    this.#write(run, lines, journal);
    return true;
  }

  /** Called at the end of a transaction: writes its events as one row, and moves old events to rows of their own. */
  flush(): void {
    if (this.#body !== '') {
      this.#position += 1;
      this.#sql.insertCommit(this.#position, this.#body);
      this.#body = '';
    }
    for (const run of this.#pending.values()) {
      const old = run.since <= this.#position - maxCommits || this.#chars > maxChars;
      if (!old) break;
      this.#moveToRow(run);
    }
    const [first] = this.#pending.values();
    const since = first?.since ?? this.#position + 1;
    if (since - this.#oldest < trimBatch) return;
    this.#sql.trimCommits(since);
    this.#oldest = since;
  }

  /** Moves all events to rows of their own. */
  empty(): void {
    for (const run of this.#pending.values()) this.#moveToRow(run);
    this.#sql.trimCommits(Number.MAX_SAFE_INTEGER);
    this.#position = 0;
    this.#oldest = 1;
  }

  /** Adds a new run with its first events. Its row must have been inserted without any. */
  begin({ run_id, epoch }: RunRow, session: number, lines: readonly string[], journal: readonly string[] = []): void {
    this.#write(this.#track(run_id, { epoch, last: 0, session }), lines, journal);
  }

  /** A run that is being written, as far as the log knows it. */
  find(run_id: string): ActiveRun | undefined {
    return this.#active.get(run_id);
  }

  /** Removes a run from the log, with a write that changes more than its events and stores its newest events as well. */
  release(run_id: string): void {
    this.#pending.delete(run_id);
    this.#chars -= this.#active.get(run_id)?.chars ?? 0;
    this.#active.delete(run_id);
  }

  /** The row with the last event that is in the log. */
  current(row: RunRow): RunRow {
    const last = this.#active.get(row.run_id)?.last;
    return last === undefined || last === row.last ? row : { ...row, last };
  }

  /** The events after an id that are only in the log. */
  events(run_id: string, after: number, limit: number): Batch | undefined {
    const run = this.#pending.get(run_id);
    if (run === undefined || run.last <= after) return undefined;
    const skip = Math.max(0, after - run.lastStored);
    const lines = unpackLines(run.texts.join('\n'));
    return { first: run.lastStored + skip + 1, lines: lines.slice(skip, skip + limit) };
  }

  journal(run_id: string): readonly string[] {
    return this.#pending.get(run_id)?.journal ?? [];
  }

  #findOrRead(run_id: string): ActiveRun | undefined {
    const known = this.#active.get(run_id);
    if (known !== undefined) return known;
    const stored = this.#sql.unfinishedRun.get(run_id);
    return stored && this.#track(run_id, stored);
  }

  #track(run_id: string, { epoch, last, session }: Pick<ActiveRun, 'epoch' | 'last' | 'session'>): ActiveRun {
    const run: ActiveRun = {
      run_id,
      epoch,
      session,
      last,
      lastStored: last,
      since: 0,
      texts: [],
      journal: [],
      chars: 0,
    };
    this.#active.set(run_id, run);
    return run;
  }

  #write(run: ActiveRun, lines: readonly string[], journal: readonly string[]): void {
    const entry = {
      run_id: run.run_id,
      first: run.last + 1,
      count: lines.length,
      text: packLines(lines),
      chars: charsOf(lines),
      journal,
    };
    const body = format(entry);
    // Checked here, where the error belongs to one write.
    if (body.includes('\0')) throw new TypeError('an event must not contain a NUL character');
    this.#body += body;
    // A long write begins a row: see `fullChars`.
    if (entry.chars >= fullChars) this.#moveToRow(run);
    this.#add(run, entry);
    if (run.chars >= fullChars) this.#moveToRow(run);
  }

  #add(run: ActiveRun, { count, text, chars, journal }: Entry): void {
    if (run.texts.length === 0) {
      run.since = this.#position + 1;
      this.#pending.set(run.run_id, run);
    }
    run.texts.push(text);
    // One by one: thousands of arguments of a call would overflow the stack.
    for (const line of journal) run.journal.push(line);
    run.last += count;
    run.chars += chars;
    this.#chars += chars;
  }

  #moveToRow(run: ActiveRun): void {
    const { run_id, lastStored, last, texts, journal } = run;
    if (texts.length === 0) return;
    this.#pending.delete(run_id);
    this.#sql.insertEvents(run_id, lastStored + 1, last, texts.join('\n'));
    if (journal.length > 0) this.#sql.insertJournal(run_id, journal.join('\n'));
    this.#sql.setLast(last, run_id);
    this.#chars -= run.chars;
    run.lastStored = last;
    run.texts = [];
    run.journal = [];
    run.chars = 0;
  }

  /** Skips events that have a row of their own, that do not follow the last event, or whose run is final or deleted. */
  #restore(entry: Entry): void {
    const run = this.#findOrRead(entry.run_id);
    if (run !== undefined && entry.first === run.last + 1) this.#add(run, entry);
  }
}

/** The part of a commit that one write added. Its header line has the run and the numbers of the lines that follow. */
interface Entry {
  readonly run_id: string;
  readonly first: number;
  /** Number of events, and their packed lines. */
  readonly count: number;
  readonly text: string;
  /** Characters of its lines before they were packed. */
  readonly chars: number;
  readonly journal: readonly string[];
}

function format({ run_id, first, count, text, journal }: Entry): string {
  const lines = journal.length === 0 ? text : [text, ...journal].join('\n');
  return `${run_id} ${first} ${count} ${journal.length}\n${lines}\n`;
}

/** The entries of a commit; of a damaged one, those before the damage. */
function parse(body: string): Entry[] {
  const lines = body.split('\n');
  const entries: Entry[] = [];
  // The last line ends the body.
  for (let at = 0; at < lines.length - 1; ) {
    const [, run_id = '', ...numbers] = /^(.*) (\d+) (\d+) (\d+)$/.exec(lines[at] ?? '') ?? [];
    const [first = 0, count = 0, journalCount = 0] = numbers.map(Number);
    const journalStart = at + 1 + count;
    if (run_id === '' || journalStart + journalCount >= lines.length) break;
    const text = lines.slice(at + 1, journalStart).join('\n');
    const end = journalStart + journalCount;
    const chars = charsOf(unpackLines(text));
    entries.push({ run_id, first, count, text, chars, journal: lines.slice(journalStart, end) });
    at = end;
  }
  return entries;
}
