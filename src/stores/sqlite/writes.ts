import { charsOf, fullChars } from '../../core/lines.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Outcome, TargetsChanged, Write } from '../../core/store.ts';
import { packLines } from '../packed-lines.ts';
import { mutableColumns, runColumns, valuesOf } from '../run-columns.ts';
import type { ActiveRun, CommitLog } from './commit-log.ts';
import type { FileDeliveries } from './deliveries.ts';
import type { FileSessions } from './sessions.ts';
import type { Statements } from './statements.ts';

/** Applies writes to the file. Must be called in a transaction. */
export class Writes {
  readonly #sql: Statements;
  readonly #log: CommitLog;
  readonly #sessions: FileSessions;
  readonly #deliveries: FileDeliveries;

  constructor(sql: Statements, log: CommitLog, sessions: FileSessions, deliveries: FileDeliveries) {
    this.#sql = sql;
    this.#log = log;
    this.#sessions = sessions;
    this.#deliveries = deliveries;
  }

  apply(write: Write): Outcome {
    if (appendsOnly(write)) return this.#log.append(write) ? 'taken' : 'fenced';
    const { row, expect, key, when } = write;
    const sql = this.#sql;
    const storedKey = key && sql.key.get(key.scope, key.key);
    if (key !== undefined && storedKey !== undefined && storedKey.created_at >= key.fresh) return 'key_used';
    // Whether a run is final is always in its table; the commit log has only events.
    if (when !== undefined && sql.otherUnfinished[when].get(row.session_id, row.run_id) !== undefined)
      return 'session_busy';
    const isFirst = expect === 0 && write.input !== undefined;
    const session = isFirst ? this.#insertRun(write) : this.#updateRun(write);
    if (typeof session !== 'number') return session;
    if (key !== undefined) sql.insertKey(key.scope, key.key, key.hash, key.run_id, key.after, key.created_at);
    if (write.resources || write.history || write.state !== undefined) this.#sessions.update(write, session);
    if (write.deliveries) this.#deliveries.add(write.deliveries, row);
    return 'taken';
  }

  /** Returns the number of the run's session. */
  #insertRun({ row, lines, journal, input }: Write): number | 'fenced' {
    const isActive = !isFinal(row.status) && lines.length > 0;
    const found = this.#sessions.find(row.session_id);
    const { session } = found;
    const values = valuesOf(isActive ? { ...row, last: 0 } : row, runColumns);
    if (this.#sql.insertRun.run(...values, JSON.stringify(input), session).changes === 0) return 'fenced';
    this.#sessions.use(found, row);
    if (isActive) this.#log.begin(row, session, lines, journal);
    else this.#insertLog(row.run_id, 0, { lines, journal });
    return session;
  }

  /** Stores events that are only in the commit log as well. Returns the number of the run's session. */
  #updateRun(write: Write): number | 'fenced' | TargetsChanged {
    const { row, expect, from = row.epoch } = write;
    const { run_id } = row;
    const active = this.#log.find(run_id);
    if (active !== undefined && (active.last !== expect || active.epoch !== from)) return 'fenced';
    const lastStored = active?.lastStored ?? expect;
    const fence = [run_id, from, lastStored, needsTargets(write) ? 1 : 0, row.targets];
    if (this.#sql.updateRun.run(...valuesOf(row, mutableColumns), ...fence).changes === 0)
      return this.#refusal(write, lastStored);
    this.#log.release(run_id);
    if (active === undefined || charsOf(write.lines) < fullChars) this.#insertLog(run_id, expect, write, active);
    else {
      // A long write begins a row: see `fullChars`.
      this.#insertLog(run_id, expect, { lines: [] }, active);
      this.#insertLog(run_id, expect, write);
    }
    return active?.session ?? this.#sessionOf(run_id);
  }

  /** Why the row of a run was not updated. */
  #refusal(write: Write, lastStored: number): 'fenced' | TargetsChanged {
    const { row, expect, from = row.epoch } = write;
    // Its epoch and end match, so its targets do not.
    const stored = this.#sql.targets.get(row.run_id, from, lastStored);
    if (stored !== undefined) return { targets: stored.targets };
    if (lastStored === expect) return 'fenced';
    throw new Error(`the row of run ${row.run_id} does not match the commit log`);
  }

  #sessionOf(run_id: string): number {
    const run = this.#sql.endOfRun.get(run_id);
    if (run === undefined) throw new Error(`run ${run_id} has no row`);
    return run.session;
  }

  /** Inserts the events and journal entries of a write, after those that were only in the commit log. */
  #insertLog(run_id: string, expect: number, { lines, journal = [] }: Added, active?: ActiveRun): void {
    const after = active?.lastStored ?? expect;
    const last = expect + lines.length;
    const texts = [...(active?.texts ?? []), ...(lines.length > 0 ? [packLines(lines)] : [])];
    const entries = [...(active?.journal ?? []), ...journal];
    if (last > after) this.#sql.insertEvents(run_id, after + 1, last, texts.join('\n'));
    if (entries.length > 0) this.#sql.insertJournal(run_id, entries.join('\n'));
  }
}

type Added = Pick<Write, 'lines' | 'journal'>;

/** Whether the row of a write has to have the run's newest targets: its events may change the status. */
const needsTargets = ({ grown, lines }: Write): boolean => grown !== true && lines.length > 0;

/** Whether a write only appends to the log, as most writes do. */
const appendsOnly = ({ grown, lines, when, resources, history, state, ended, key, deliveries }: Write): boolean =>
  grown === true &&
  lines.length > 0 &&
  !(when || resources || history || state !== undefined || ended || key || deliveries);
