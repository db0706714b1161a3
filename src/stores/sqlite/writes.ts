import {
  appendsOnly,
  lastAfter,
  type Outcome,
  type TargetsChanged,
  type Write,
  type WrittenRow,
} from '../../core/ports/run-store.ts';
import { isFinal } from '../../core/run-state.ts';
import { figuresOf } from '../figures.ts';
import type { CommitLog } from './commit-log.ts';
import type { FileDeliveries } from './deliveries.ts';
import { isKnownKey, type Value } from './driver.ts';
import type { FileFigures } from './figures.ts';
import type { Numbers } from './numbers.ts';
import type { FileSessions } from './sessions.ts';
import type { RunNumbers, Statements } from './statements.ts';

/** The parts of a file that its writes change. */
export interface FileParts {
  readonly log: CommitLog;
  readonly sessions: FileSessions;
  readonly deliveries: FileDeliveries;
  readonly figures: FileFigures;
  readonly numbers: Numbers;
}

/** Applies writes to the file. Must be called in a transaction. */
export class Writes {
  readonly #sql: Statements;
  readonly #log: CommitLog;
  readonly #sessions: FileSessions;
  readonly #deliveries: FileDeliveries;
  readonly #figures: FileFigures;
  readonly #numbers: Numbers;

  constructor(sql: Statements, parts: FileParts) {
    this.#sql = sql;
    this.#log = parts.log;
    this.#sessions = parts.sessions;
    this.#deliveries = parts.deliveries;
    this.#figures = parts.figures;
    this.#numbers = parts.numbers;
  }

  apply(write: Write): Outcome {
    if (appendsOnly(write)) return this.#append(write);
    const { row, expect, key, when } = write;
    const sql = this.#sql;
    const storedKey = key && sql.key.get(key.scope, key.key);
    if (key !== undefined && storedKey !== undefined && storedKey.created_at >= key.fresh) return 'key_used';
    // Whether a run is final is always in its table; the commit log has only events.
    if (when !== undefined && sql.otherUnfinished[when].get(row.session_id, row.run_id) !== undefined)
      return 'session_busy';
    const isFirst = expect === 0 && write.input !== undefined;
    const applied = isFirst ? this.#insertRun(write) : this.#updateRun(write);
    if (typeof applied !== 'object' || 'targets' in applied) return applied;
    if (key !== undefined) sql.insertKey(key.scope, key.key, key.hash, key.run_id, key.after, key.created_at);
    if (write.resources || write.history || write.state !== undefined) this.#sessions.update(write, applied.session);
    if (write.deliveries) this.#deliveries.add(write.deliveries, row);
    if (isFinal(row.status)) this.#figures.add(row, write.ended);
    return 'taken';
  }

  /** The events go to the commit log, and nothing else changes. */
  #append(write: Write): 'taken' | 'fenced' {
    const run = this.#log.writable(write);
    if (run === undefined) return 'fenced';
    this.#log.write(run, write);
    return 'taken';
  }

  #insertRun(write: Write): InSession | 'fenced' {
    const { row, lines, input } = write;
    const isActive = !isFinal(row.status) && lines.length > 0;
    const found = this.#sessions.find(row.session_id);
    const number = this.#numbers.next();
    const { session } = found;
    const values = [...rowValues(row, isActive ? 0 : lastAfter(write)), ...addedBy(write)];
    try {
      this.#sql.insertRun(...values, JSON.stringify(input), number, session);
    } catch (error) {
      if (isKnownKey(error)) return 'fenced';
      throw error;
    }
    this.#sessions.use(found, row);
    const { run_id, epoch, targets } = row;
    const run = this.#log.track({ run_id, epoch, targets, last: 0, number, session });
    if (isActive) this.#log.write(run, write);
    else this.#log.settle(run, write);
    return { session };
  }

  /** Stores events that are only in the commit log as well. */
  #updateRun(write: Write): InSession | 'fenced' | TargetsChanged {
    const { row } = write;
    const run = this.#log.writable(write);
    if (run === undefined) return 'fenced';
    if (needsTargets(write) && run.targets !== row.targets) return { targets: run.targets };
    this.#log.settle(run, write);
    this.#sql.updateRun(...changedValues(row, lastAfter(write)), ...addedBy(write), row.run_id);
    return { session: run.session };
  }
}

type InSession = Pick<RunNumbers, 'session'>;

/** The values of `runColumns`. Written out: to look up each by its name would take ten times as long. */
const rowValues = (row: WrittenRow, last: number): Value[] => [
  row.run_id,
  row.agent_name,
  row.session_id,
  row.owner,
  row.principal,
  row.targets,
  row.readers,
  row.trace,
  row.epoch,
  row.status,
  row.status_at,
  row.title,
  row.created_at,
  row.finished_at,
  row.tier,
  row.attempts,
  row.queued_at,
  row.due,
  row.on_disconnect,
  last,
  row.snapshot,
  row.rests_at,
  row.parked,
];

/** The values of `mutableColumns`. */
const changedValues = (row: WrittenRow, last: number): Value[] => [
  row.trace,
  row.epoch,
  row.status,
  row.status_at,
  row.finished_at,
  row.attempts,
  row.queued_at,
  row.due,
  last,
  row.snapshot,
  row.rests_at,
  row.parked,
];

/** What a write adds to the figures of the run's agent, as values of the run's row. */
function addedBy({ row, ended }: Write): Value[] {
  if (ended === undefined) return [null, null];
  const { tokens, seconds } = figuresOf(row, ended);
  return [tokens, seconds];
}

/** Whether the row of a write has to have the run's newest targets: its events may change the status. */
const needsTargets = ({ grown, lines }: Write): boolean => grown !== true && lines.length > 0;
