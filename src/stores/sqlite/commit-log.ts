import { BoxedMap } from '../../core/collections.ts';
import { charsOf, fullChars } from '../../core/lines.ts';
import type { Batch, RunRow, Write } from '../../core/ports/run-store.ts';
import { packLines, unpackLines } from '../packed-lines.ts';
import type { Statements, StoredRun } from './statements.ts';

/**
 * Commits, and characters, above which the log moves events to rows of their own. A start after a crash reads as many.
 */
const maxCommits = 4096;
const maxChars = 4 * 1024 * 1024;
/** Old commits that are deleted at a time. */
const trimBatch = 256;

/** A run that is being written. Its newest events and their journal entries are in the commit log only. */
interface ActiveRun extends StoredRun {
  targets: string | null;
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

  /**
   * The run that a write may change. Undefined where the write is fenced: the run is unknown or final, or has another epoch
   * or another last event. The file belongs to one process, so what was read once stays true.
   */
  writable({ row, expect, from = row.epoch }: Write): ActiveRun | undefined {
    const run = this.#findOrRead(row.run_id);
    return run?.last === expect && run.epoch === from ? run : undefined;
  }

  /** Called at the end of a transaction: writes its events as one row, and moves old events to rows of their own. */
  flush(): void {
    if (this.#body !== '') {
      this.#position += 1;
      this.#sql.insertCommit(this.#position, this.#body);
      this.#body = '';
    }
    for (let run = this.#pending.first(); run !== undefined && this.#isOld(run); run = this.#pending.first())
      this.#moveToRow(run);
    const since = this.#pending.first()?.since ?? this.#position + 1;
    if (since - this.#oldest < trimBatch) return;
    this.#sql.trimCommits(since);
    this.#oldest = since;
  }

  /** Moves all events to rows of their own. */
  empty(): void {
    for (const run of this.#pending.all()) this.#moveToRow(run);
    this.#sql.trimCommits(Number.MAX_SAFE_INTEGER);
    this.#position = 0;
    this.#oldest = 1;
  }

  /** Adds a run whose row has the event `last`. */
  track({ run_id, epoch, targets, last, number, session }: StoredRun): ActiveRun {
    // Written out: to add fields to a spread copy takes V8 7 µs, half as much as the insertion of the run's row.
    const run: ActiveRun = {
      run_id,
      epoch,
      targets,
      last,
      number,
      session,
      lastStored: last,
      since: 0,
      texts: [],
      journal: [],
      chars: 0,
    };
    this.#active.set(run_id, run);
    return run;
  }

  /** Appends the events of a write, at least one, and its journal entries. */
  write(run: ActiveRun, { lines, journal = [] }: Added): void {
    const entry = entryOf(run, lines, journal);
    const body = format(entry);
    // Checked here, where the error belongs to one write.
    if (body.includes('\0')) throw new TypeError('an event must not contain a NUL character');
    this.#body += body;
    // A long write begins a row: see `fullChars`.
    if (entry.chars >= fullChars) this.#moveToRow(run);
    this.#add(run, entry);
    if (run.chars >= fullChars) this.#moveToRow(run);
  }

  /**
   * Stores the events and journal entries of a run in rows: those that are only in this log, and those of a write that
   * changes more. Removes the run from the log.
   */
  settle(run: ActiveRun, { lines, journal = [] }: Added): void {
    if (charsOf(lines) >= fullChars) this.#insertRows(run);
    this.#extend(run, entryOf(run, lines, journal));
    this.#insertRows(run);
    this.#active.delete(run.run_id);
  }

  /** The run has new targets. */
  retarget(run_id: string, targets: string | null): void {
    const run = this.#active.get(run_id);
    if (run !== undefined) run.targets = targets;
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
    return stored && this.track(stored);
  }

  /** Adds at least one event. */
  #add(run: ActiveRun, entry: Entry): void {
    if (run.texts.length === 0) {
      run.since = this.#position + 1;
      this.#pending.set(run.run_id, run);
    }
    this.#extend(run, entry);
  }

  #extend(run: ActiveRun, { count, text, chars, journal }: Entry): void {
    if (count > 0) run.texts.push(text);
    // One by one: thousands of arguments of a call would overflow the stack.
    for (const line of journal) run.journal.push(line);
    run.last += count;
    run.chars += chars;
    this.#chars += chars;
  }

  #isOld(run: ActiveRun): boolean {
    return run.since <= this.#position - maxCommits || this.#chars > maxChars;
  }

  #moveToRow(run: ActiveRun): void {
    if (run.texts.length === 0) return;
    this.#insertRows(run);
    this.#sql.setLast(run.last, run.run_id);
  }

  /** Inserts rows for what is only in this log. The row of the run does not have its last event yet. */
  #insertRows(run: ActiveRun): void {
    const { run_id, number, lastStored, last, texts, journal } = run;
    this.#pending.delete(run_id);
    if (last > lastStored) this.#sql.insertEvents(number, lastStored + 1, last, texts.join('\n'));
    if (journal.length > 0) this.#sql.insertJournal(number, journal.join('\n'));
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

type Added = Pick<Write, 'lines' | 'journal'>;

const entryOf = ({ run_id, last }: ActiveRun, lines: readonly string[], journal: readonly string[]): Entry => ({
  run_id,
  first: last + 1,
  count: lines.length,
  text: packLines(lines),
  chars: charsOf(lines),
  journal,
});

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
    if (run_id === '' || count === 0 || journalStart + journalCount >= lines.length) break;
    const text = lines.slice(at + 1, journalStart).join('\n');
    const end = journalStart + journalCount;
    const chars = charsOf(unpackLines(text));
    entries.push({ run_id, first, count, text, chars, journal: lines.slice(journalStart, end) });
    at = end;
  }
  return entries;
}
