import type { RunRow, RunStore } from '../../core/ports/run-store.ts';
import { isFinal } from '../../core/run-state.ts';
import { newId } from '../ids.ts';
import { changeColumn } from '../store/change-column.ts';

/** A node that has readers of a run, or had some. */
export interface ReaderNode {
  readonly id: string;
  /** `disconnected`: its last reader has left without the end of the response, and may come back. */
  readonly readers: 'connected' | 'disconnected';
  /** From then on, without a renewal, the node has died or its clients' time of grace is over. */
  readonly until: string;
}

export const readersOf = ({ readers }: Pick<RunRow, 'readers'>): ReaderNode[] =>
  readers === null ? [] : JSON.parse(readers);

const isConnected = ({ readers }: ReaderNode): boolean => readers === 'connected';
const isOver = ({ until }: ReaderNode): boolean => until < new Date().toISOString();

/** Whether a run has readers at nodes, which may have died since. */
export const hasReaders = (row: RunRow): boolean => row.readers !== null && row.on_disconnect !== 'continue';

/** Whether a run had readers at a node that has died. */
export const hasLostReaders = (row: RunRow): boolean => hasReaders(row) && readersOf(row).some(isOver);

/**
 * The nodes that have connected readers of a run. A node renews its entry each `lease`. An entry that is older than two
 * leases is of a node that has died.
 */
export class ReaderNodes {
  readonly #store: RunStore;
  readonly #lease: number;
  readonly #id: string;

  /** `id`: of this node, where the next process is the same node. Default: each process is another one. */
  constructor(store: RunStore, lease: number, id = newId()) {
    this.#store = store;
    this.#lease = lease;
    this.#id = id;
  }

  /**
   * Adds or renews this node, which gives its clients a time of grace in milliseconds. The entry of another node that was
   * disconnected is removed: the client has come back here.
   */
  async enter(run_id: string, grace: number): Promise<void> {
    await this.#change(run_id, (others) => [...others.filter(isConnected), this.#node('connected', grace)]);
  }

  /** The last reader of this node has disconnected, and may come back. It counts only where no other node has readers. */
  async disconnect(run_id: string, grace: number): Promise<void> {
    await this.#change(run_id, (others) =>
      others.some(isConnected) ? others : [...others, this.#node('disconnected', grace)],
    );
  }

  /**
   * Removes this node. Resolves to whether it was the last one: no other node has readers. A node that was disconnected is
   * not the last one if another node has had readers since.
   */
  async leave(run_id: string, wasDisconnected: boolean): Promise<boolean> {
    let isLast = false;
    await this.#change(run_id, (others, isHere) => {
      isLast = (isHere || !wasDisconnected) && !others.some(isConnected);
      return others;
    });
    return isLast;
  }

  /** Removes the nodes that have died. Resolves to whether there were some, and no other node knows of a reader. */
  async bury(run_id: string): Promise<boolean> {
    let wereLast = false;
    await this.#change(run_id, (others, isHere, haveDied) => {
      wereLast = haveDied && !isHere && others.length === 0;
      return others;
    });
    return wereLast;
  }

  #node(readers: ReaderNode['readers'], grace: number): ReaderNode {
    return { id: this.#id, readers, until: new Date(Date.now() + 2 * this.#lease + grace).toISOString() };
  }

  /** Changes the nodes of a run that is not final. Those that have died are left out. */
  async #change(
    run_id: string,
    change: (others: ReaderNode[], isHere: boolean, haveDied: boolean) => ReaderNode[],
  ): Promise<void> {
    await changeColumn(this.#store, run_id, 'readers', (row) => {
      if (isFinal(row.status)) return row.readers;
      const nodes = readersOf(row);
      const others = nodes.filter(({ id }) => id !== this.#id);
      const alive = others.filter((one) => !isOver(one));
      const after = change(alive, others.length < nodes.length, alive.length < others.length);
      return after.length === 0 ? null : JSON.stringify(after);
    });
  }
}
