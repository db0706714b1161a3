import { disconnectedForm, type PushTarget, readersForm, targetsOf } from '../../core/push-targets.ts';
import { isFinal } from '../../core/run-state.ts';
import type { RunRow, Store } from '../../core/store.ts';
import { newId } from '../ids.ts';
import { changeTargets } from '../targets.ts';

const areReaders = ({ form }: PushTarget): boolean => form === readersForm;

const isNode = ({ until }: PushTarget): boolean => until !== undefined;
const isOver = ({ until }: PushTarget): boolean => until !== undefined && until < new Date().toISOString();

/** Whether a run has readers at nodes, which may have died since. */
export const hasReaders = (row: RunRow, those = isNode): boolean =>
  row.on_disconnect !== 'continue' && row.targets !== null && targetsOf(row).some(those);

/** Whether a run had readers at a node that has died. */
export const hasLostReaders = (row: RunRow): boolean => hasReaders(row, isOver);

/**
 * The nodes that have connected readers of a run. They are targets of the run, so that no write of the run has to be
 * repeated for them, and they are removed with it. A node renews what is known of it each `lease`, and counts for two of
 * them: after that it has died.
 */
export class ReaderNodes {
  readonly #store: Store;
  readonly #lease: number;
  readonly #id: string;

  /** `id`: of this node, where the next process is the same node. Default: each process is another one. */
  constructor(store: Store, lease: number, id = newId()) {
    this.#store = store;
    this.#lease = lease;
    this.#id = id;
  }

  /**
   * Adds or renews this node, which gives its clients a time of grace in milliseconds. It takes back the disconnect of
   * another one: the client has come back here.
   */
  async enter(run_id: string, grace: number): Promise<void> {
    await this.#change(run_id, (others) => [
      ...others.filter(({ form }) => form !== disconnectedForm),
      this.#node(readersForm, grace),
    ]);
  }

  /** The last reader of this node has disconnected, and may come back. It counts only where no other node has readers. */
  async disconnect(run_id: string, grace: number): Promise<void> {
    await this.#change(run_id, (others) =>
      others.some(areReaders) ? others : [...others, this.#node(disconnectedForm, grace)],
    );
  }

  /**
   * Removes this node. Resolves to whether it was the last: no other node has readers, or, where it was disconnected, has
   * had any since.
   */
  async leave(run_id: string, wasDisconnected: boolean): Promise<boolean> {
    let isLast = false;
    await this.#change(run_id, (others, isHere) => {
      isLast = (isHere || !wasDisconnected) && !others.some(areReaders);
      return others;
    });
    return isLast;
  }

  /** Removes the nodes that have died. Resolves to whether there were some, and no other node knows of a reader. */
  async bury(run_id: string): Promise<boolean> {
    let wereLast = false;
    await this.#change(run_id, (others, isHere, haveDied) => {
      wereLast = haveDied && !isHere && !others.some(isNode);
      return others;
    });
    return wereLast;
  }

  #node(form: string, grace: number): PushTarget {
    return { id: this.#id, url: '', form, until: new Date(Date.now() + 2 * this.#lease + grace).toISOString() };
  }

  async #change(
    run_id: string,
    change: (others: PushTarget[], isHere: boolean, haveDied: boolean) => PushTarget[],
  ): Promise<void> {
    const row = await this.#store.run(run_id);
    if (row === undefined || isFinal(row.status)) return;
    await changeTargets(this.#store, run_id, (targets) => {
      const others = targets.filter(({ id }) => id !== this.#id);
      const alive = others.filter((one) => !isOver(one));
      return change(alive, others.length < targets.length, alive.length < others.length);
    });
  }
}
