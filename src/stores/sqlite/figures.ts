import type { AgentFigures } from '../../core/ports/run-lists.ts';
import type { Write, WrittenRow } from '../../core/ports/run-store.ts';
import { type EndedRun, everyone, figuresOf, type OwnedFigures, sumOf } from '../figures.ts';
import type { Statements } from './statements.ts';
import type { StatusLists } from './status-lists.ts';

/** Runs that end before the table gets their sum. A start after a crash reads as many rows. */
const batch = 64;

/**
 * The figures of agents. The row of each run has what the run adds to them, and the table of figures gets the sum of
 * many runs at once: one more page in each commit that ends a run would take 8 µs.
 * The file has a time up to which all runs that ended are in the table. A run that ends later is added to the sum in
 * memory, and a start finds it by its time. Any other run, such as one after the clock was set back, is added to the
 * table at once. So each run counts once.
 * Methods that write must be called in a transaction; after a failed one, `recover` reads the file again.
 */
export class FileFigures {
  readonly #sql: Statements;
  readonly #lists: StatusLists;
  /** The sums of the runs that are not in the table yet, their number, and when the last of them ended. */
  readonly #pending = new Map<string, OwnedFigures>();
  #runs = 0;
  #lastEnd = '';
  #countedUntil = '';

  constructor(sql: Statements, lists: StatusLists) {
    this.#sql = sql;
    this.#lists = lists;
  }

  recover(): void {
    this.#forget();
    this.#countedUntil = this.#sql.countedUntil.get()?.time ?? '';
    for (const { tokens, seconds, ...row } of this.#lists.endedAfter(this.#countedUntil)) {
      this.#keep(row, tokens === null || seconds === null ? undefined : { tokens, seconds });
    }
  }

  /** Adds a run that ends, and whose row is written in the same transaction; `ended` is what the row has of its figures. */
  add(row: WrittenRow, ended: Write['ended']): void {
    if (row.status_at <= this.#countedUntil) {
      for (const figures of ownedFigures(row, ended)) this.#store(figures);
      return;
    }
    this.#keep(row, ended);
    if (this.#runs >= batch) this.flush();
  }

  /** Adds the sums in memory to the table. Called before rows of runs are deleted. */
  flush(): void {
    if (this.#runs === 0) return;
    for (const figures of this.#pending.values()) this.#store(figures);
    this.#countedUntil = this.#lastEnd;
    this.#sql.setCountedUntil(this.#countedUntil);
    this.#forget();
  }

  of(agent_names: readonly string[], owner = everyone): AgentFigures[] {
    const stored = this.#sql.figures.all(owner, JSON.stringify(agent_names));
    const found = new Map(stored.map((figures) => [figures.agent_name, figures]));
    for (const agent_name of agent_names) {
      const pending = this.#pending.get(keyOf(owner, agent_name));
      if (pending === undefined) continue;
      const { owner: _, ...figures } = pending;
      found.set(agent_name, sumOf(found.get(agent_name), figures));
    }
    return [...found.values()];
  }

  /** Runs without figures, such as cancelled ones, count as well, so that a start does not read all of them. */
  #keep(row: EndedRun & Pick<WrittenRow, 'status_at'>, ended: Write['ended']): void {
    for (const figures of ownedFigures(row, ended)) {
      const { owner, agent_name } = figures;
      const key = keyOf(owner, agent_name);
      this.#pending.set(key, { owner, ...sumOf(this.#pending.get(key), figures) });
    }
    this.#runs += 1;
    if (row.status_at > this.#lastEnd) this.#lastEnd = row.status_at;
  }

  #store({ owner, agent_name, completed, failed, tokens, seconds }: OwnedFigures): void {
    this.#sql.addFigures(owner, agent_name, completed, failed, tokens, seconds);
  }

  #forget(): void {
    this.#pending.clear();
    this.#runs = 0;
    this.#lastEnd = '';
  }
}

/** An agent's name has no spaces. */
const keyOf = (owner: string, agent_name: string): string => `${owner} ${agent_name}`;

/** A run counts for all owners, and for its own. */
function ownedFigures(row: EndedRun, ended: Write['ended']): OwnedFigures[] {
  if (ended === undefined) return [];
  const figures = figuresOf(row, ended);
  const ofAll = { owner: everyone, ...figures };
  return row.owner === null ? [ofAll] : [ofAll, { owner: row.owner, ...figures }];
}
