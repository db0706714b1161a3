import { BoxedMap } from '../../core/collections.ts';
import type { Batch, RunRow, Write } from '../../core/store.ts';
import type { Statements } from './statements.ts';

/** Characters of one run's newest events before they get a row of their own; about as much as a reader holds. */
const rowChars = 16 * 1024;
/** Commits, and characters, that the log keeps before it begins to put runs away; what a start after a crash reads. */
const keptCommits = 4096;
const keptChars = 4 * 1024 * 1024;
/** Rows that are deleted at a time. */
const trimmed = 256;

/** A run that is being written to. Its newest events, and what its journal got with them, are in the log only. */
interface Growing {
  readonly run_id: string;
  readonly epoch: number;
  /** The end of its events, and how many of them have rows of their own. */
  last: number;
  kept: number;
  /** The commit that has the oldest of the others. */
  since: number;
  /** The events after `kept`: the lines of each write as one text, since each string is copied while it waits here. */
  texts: string[];
  journal: string[];
  chars: number;
}

/** What of a run has no row yet, after the event `kept`. */
export type Released = Pick<Growing, 'kept' | 'texts' | 'journal'>;

/**
 * The log of commits: what runs appended in one commit is one row, whoever appended it. A row for each run would
 * be a page for each, since a run's rows lie together, and 35 µs; that is most of what a token costs where many
 * runs stream at a model's pace. A run's events get rows of their own when there are enough of them, when
 * anything else of the run changes, or when the log gets long; until then they are here, in memory and in the
 * log, which is read again after a crash. The file belongs to one process, so memory knows the ends of logs.
 * Everything that writes is called inside a transaction; after one that failed, `recover` reads the file anew.
 * Nothing that reads writes, so a full disk keeps no reader waiting.
 */
export class CommitLog {
  readonly #sql: Statements;
  readonly #growing = new BoxedMap<Growing>();
  /** Those of them with events in the log only, the oldest first. */
  readonly #waiting = new BoxedMap<Growing>();
  #position = 0;
  #oldest = 1;
  #chars = 0;
  #body = '';

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Reads what the file says, at the start and after a transaction that failed. Writes nothing. */
  recover(): void {
    this.#growing.clear();
    this.#waiting.clear();
    this.#chars = 0;
    this.#body = '';
    this.#position = 0;
    this.#oldest = 1;
    for (const { position, body } of this.#sql.commits.all()) {
      this.#position = position - 1;
      for (const part of parse(body)) this.#readAgain(part);
      this.#position = position;
    }
  }

  /** Appends events, at least one, and nothing else. Answers whether the run was at that place. */
  append({ row: { run_id, epoch }, expect, lines, journal = [] }: Write): boolean {
    const run = this.#find(run_id);
    if (run === undefined || run.last !== expect || run.epoch !== epoch) return false;
    this.#write(run, lines, journal);
    return true;
  }

  /** Ends the transaction: what was appended in it is one row, and what has been here for long is put away. */
  flush(): void {
    if (this.#body !== '') {
      this.#position += 1;
      this.#sql.insertCommit.run(this.#position, this.#body);
      this.#body = '';
    }
    for (const run of this.#waiting.values()) {
      const old = run.since <= this.#position - keptCommits || this.#chars > keptChars;
      if (!old) break;
      this.#putAway(run);
    }
    const [first] = this.#waiting.values();
    const since = first?.since ?? this.#position + 1;
    if (since - this.#oldest < trimmed) return;
    this.#sql.trimCommits.run(since);
    this.#oldest = since;
  }

  /** Puts everything away. */
  empty(): void {
    for (const run of this.#waiting.values()) this.#putAway(run);
    this.#sql.trimCommits.run(Number.MAX_SAFE_INTEGER);
    this.#position = 0;
    this.#oldest = 1;
  }

  /** Takes in a run that is new, whose row says that it has no events yet, with the first of them. */
  begin(row: RunRow, lines: readonly string[], journal: readonly string[] = []): void {
    const { run_id, epoch } = row;
    const run: Growing = { run_id, epoch, last: 0, kept: 0, since: 0, texts: [], journal: [], chars: 0 };
    this.#growing.set(run_id, run);
    this.#write(run, lines, journal);
  }

  /**
   * A run is about to change in more than its events: gives up what has no row yet, to be kept with the change.
   * Undefined where the log does not know the run.
   */
  release(run_id: string): Released | undefined {
    const run = this.#growing.get(run_id);
    if (run === undefined) return undefined;
    this.#growing.delete(run_id);
    this.#waiting.delete(run_id);
    this.#chars -= run.chars;
    return run;
  }

  /** Whether a run that the log knows ends there, and is of that epoch. */
  fits(run_id: string, epoch: number, expect: number): boolean {
    const run = this.#growing.get(run_id);
    return run === undefined || (run.last === expect && run.epoch === epoch);
  }

  /** The row as it is with the events that are here. */
  current(row: RunRow): RunRow {
    const last = this.#growing.get(row.run_id)?.last;
    return last === undefined || last === row.last ? row : { ...row, last };
  }

  /** The events after an id that have no row yet. */
  events(run_id: string, after: number, limit: number): Batch | undefined {
    const run = this.#waiting.get(run_id);
    if (run === undefined || run.last <= after) return undefined;
    const skip = Math.max(0, after - run.kept);
    const lines = run.texts.join('\n').split('\n');
    return { first: run.kept + skip + 1, lines: lines.slice(skip, skip + limit) };
  }

  journal(run_id: string): readonly string[] {
    return this.#waiting.get(run_id)?.journal ?? [];
  }

  #find(run_id: string): Growing | undefined {
    const known = this.#growing.get(run_id);
    if (known !== undefined) return known;
    const row = this.#sql.run.get(run_id);
    if (row === undefined || row.finished_at !== null) return undefined;
    const { epoch, last } = row;
    const run: Growing = { run_id, epoch, last, kept: last, since: 0, texts: [], journal: [], chars: 0 };
    this.#growing.set(run_id, run);
    return run;
  }

  #write(run: Growing, lines: readonly string[], journal: readonly string[]): void {
    const part = { run_id: run.run_id, first: run.last + 1, count: lines.length, text: lines.join('\n'), journal };
    const body = written(part);
    // Found out here, where it is the fault of one write.
    if (body.includes('\0')) throw new TypeError('an event cannot have a zero in it');
    this.#body += body;
    this.#add(run, part);
    if (run.chars >= rowChars) this.#putAway(run);
  }

  #add(run: Growing, { count, text, journal }: Part): void {
    if (run.texts.length === 0) {
      run.since = this.#position + 1;
      this.#waiting.set(run.run_id, run);
    }
    run.texts.push(text);
    // One by one: as arguments of a call, many thousands would be too many for the stack.
    for (const line of journal) run.journal.push(line);
    run.last += count;
    run.chars += text.length;
    this.#chars += text.length;
  }

  #putAway(run: Growing): void {
    const { run_id, kept, last, texts, journal } = run;
    this.#waiting.delete(run_id);
    this.#sql.insertEvents.run(run_id, kept + 1, last, texts.join('\n'));
    if (journal.length > 0) this.#sql.insertJournal.run(run_id, journal.join('\n'));
    this.#sql.moveEnd.run(last, run_id);
    this.#chars -= run.chars;
    run.kept = last;
    run.texts = [];
    run.journal = [];
    run.chars = 0;
  }

  /** What has a row of its own by now, follows on nothing, or belongs to a run that is over or gone, is left out. */
  #readAgain(part: Part): void {
    const run = this.#find(part.run_id);
    if (run !== undefined && part.first === run.last + 1) this.#add(run, part);
  }
}

/** What one write put into a commit; a line says whose it is and how many lines follow. */
interface Part {
  readonly run_id: string;
  readonly first: number;
  /** How many events, and their lines. */
  readonly count: number;
  readonly text: string;
  readonly journal: readonly string[];
}

function written({ run_id, first, count, text, journal }: Part): string {
  const lines = journal.length === 0 ? text : [text, ...journal].join('\n');
  return `${run_id} ${first} ${count} ${journal.length}\n${lines}\n`;
}

/** The parts of a commit; of one that is damaged, those before the damage. */
function parse(body: string): Part[] {
  const all = body.split('\n');
  const parts: Part[] = [];
  // The last line ends the body.
  for (let at = 0; at < all.length - 1; ) {
    const [, run_id = '', ...numbers] = /^(.*) (\d+) (\d+) (\d+)$/.exec(all[at] ?? '') ?? [];
    const [first = 0, count = 0, kept = 0] = numbers.map(Number);
    const middle = at + 1 + count;
    if (run_id === '' || middle + kept >= all.length) break;
    const text = all.slice(at + 1, middle).join('\n');
    parts.push({ run_id, first, count, text, journal: all.slice(middle, middle + kept) });
    at = middle + kept;
  }
  return parts;
}
