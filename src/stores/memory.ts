import { isFinal } from '../core/status.ts';
import type { AgentFigures, Batch, Resource, RunRow, SessionRow, Store, Write } from '../core/store.ts';
import type { Message } from '../schema/message.ts';

interface Kept {
  row: RunRow;
  readonly input: readonly Message[];
  readonly batches: Batch[];
}

/** Keeps everything in this process: for tests, and where losing it all is fine. */
export class MemoryStore implements Store {
  readonly #runs = new Map<string, Kept>();
  readonly #unfinished = new Set<string>();
  readonly #sessions = new Map<string, { history: Set<string>; state: string | null }>();
  readonly #resources = new Map<string, Resource>();
  readonly #figures = new Map<string, AgentFigures>();

  async commit(writes: readonly Write[]): Promise<boolean[]> {
    return writes.map((write) => this.#take(write));
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    return this.#runs.get(run_id)?.row;
  }

  async input(run_id: string): Promise<Message[] | undefined> {
    const input = this.#runs.get(run_id)?.input;
    return input === undefined ? undefined : structuredClone([...input]);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const batches = this.#runs.get(run_id)?.batches ?? [];
    const found: Batch[] = [];
    let count = 0;
    for (let index = indexAfter(batches, after); index < batches.length && count < limit; index += 1) {
      const batch = batches[index];
      if (batch === undefined) break;
      found.push(batch);
      count += batch.lines.length;
    }
    return found;
  }

  async unfinished(limit: number): Promise<RunRow[]> {
    const rows: RunRow[] = [];
    for (const run_id of this.#unfinished) {
      const kept = this.#runs.get(run_id);
      if (kept !== undefined) rows.push(kept.row);
      if (rows.length === limit) break;
    }
    return rows;
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const session = this.#sessions.get(session_id);
    return session && { session_id, history: [...session.history], state: session.state };
  }

  async resource(resource_id: string): Promise<Resource | undefined> {
    return this.#resources.get(resource_id);
  }

  async figures(agent_names: readonly string[]): Promise<AgentFigures[]> {
    return agent_names.flatMap((name) => this.#figures.get(name) ?? []);
  }

  async close(): Promise<void> {}

  #take(write: Write): boolean {
    const { row } = write;
    let kept = this.#runs.get(row.run_id);
    if (write.expect === 0 && kept === undefined) {
      kept = { row, input: write.input ?? [], batches: [] };
      this.#runs.set(row.run_id, kept);
    } else if (kept === undefined || kept.row.last !== write.expect || kept.row.epoch !== row.epoch) {
      return false;
    } else if (isFinal(kept.row.status)) {
      return false;
    }
    kept.row = row;
    if (write.lines.length > 0) kept.batches.push({ first: write.expect + 1, lines: write.lines });
    if (isFinal(row.status)) this.#unfinished.delete(row.run_id);
    else this.#unfinished.add(row.run_id);
    for (const resource of write.resources ?? []) this.#resources.set(resource.resource_id, resource);
    this.#extend(row.session_id, write);
    if (write.ended !== undefined) this.#count(row, write.ended);
    return true;
  }

  #extend(session_id: string, { history, state }: Write): void {
    if (history === undefined && state === undefined) return;
    const session = this.#sessions.get(session_id) ?? { history: new Set(), state: null };
    for (const url of history ?? []) session.history.add(url);
    if (state !== undefined) session.state = state;
    this.#sessions.set(session_id, session);
  }

  #count(row: RunRow, ended: { tokens: number; seconds: number }): void {
    const { agent_name, status } = row;
    const sum = this.#figures.get(agent_name) ?? { agent_name, completed: 0, failed: 0, tokens: 0, seconds: 0 };
    this.#figures.set(agent_name, {
      agent_name,
      completed: sum.completed + (status === 'completed' ? 1 : 0),
      failed: sum.failed + (status === 'failed' ? 1 : 0),
      tokens: sum.tokens + ended.tokens,
      seconds: sum.seconds + ended.seconds,
    });
  }
}

/** Index of the first batch with an event after that id, by bisection: replay starts anywhere at no cost. */
function indexAfter(batches: readonly Batch[], after: number): number {
  let low = 0;
  let high = batches.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const batch = batches[middle];
    if (batch !== undefined && batch.first + batch.lines.length - 1 > after) high = middle;
    else low = middle + 1;
  }
  return low;
}
