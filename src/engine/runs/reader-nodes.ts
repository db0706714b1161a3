import { disconnectedForm, type PushTarget, readersForm } from '../../core/push-targets.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Store } from '../../core/store.ts';
import { newId } from '../ids.ts';
import { changeTargets } from '../targets.ts';

const areReaders = ({ form }: PushTarget): boolean => form === readersForm;

/**
 * The nodes that have connected readers of a run. They are targets of the run, so that no write of the run has to be
 * repeated for them, and they are removed with it. A node that dies stays among them: the run is then not cancelled when
 * its readers disconnect.
 */
export class ReaderNodes {
  readonly #store: Store;
  readonly #id = newId();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Adds this node. It takes back the disconnect of another one: the client has come back here. */
  async enter(run_id: string): Promise<void> {
    await this.#change(run_id, (others) => [
      ...others.filter(({ form }) => form !== disconnectedForm),
      this.#node(readersForm),
    ]);
  }

  /** The last reader of this node has disconnected, and may come back. It counts only where no other node has readers. */
  async disconnect(run_id: string): Promise<void> {
    await this.#change(run_id, (others) =>
      others.some(areReaders) ? others : [...others, this.#node(disconnectedForm)],
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

  #node(form: string): PushTarget {
    return { id: this.#id, url: '', form };
  }

  async #change(run_id: string, change: (others: PushTarget[], isHere: boolean) => PushTarget[]): Promise<void> {
    const row = await this.#store.run(run_id);
    if (row === undefined || isFinal(row.status)) return;
    await changeTargets(this.#store, run_id, (targets) => {
      const others = targets.filter(({ id }) => id !== this.#id);
      return change(others, others.length < targets.length);
    });
  }
}
