import { readersForm } from '../../core/push-targets.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Store } from '../../core/store.ts';
import { newId } from '../ids.ts';
import { changeTargets } from '../targets.ts';

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

  /** Adds this node. */
  async enter(run_id: string): Promise<void> {
    await this.#change(run_id, true);
  }

  /** Removes this node. Resolves to whether no other node has readers. */
  leave(run_id: string): Promise<boolean> {
    return this.#change(run_id, false);
  }

  /** Resolves to whether no other node has readers. */
  async #change(run_id: string, isHere: boolean): Promise<boolean> {
    const row = await this.#store.run(run_id);
    if (row === undefined || isFinal(row.status)) return false;
    let isAlone = true;
    await changeTargets(this.#store, run_id, (targets) => {
      const others = targets.filter(({ id }) => id !== this.#id);
      isAlone = others.every(({ form }) => form !== readersForm);
      return isHere ? [...others, { id: this.#id, url: '', form: readersForm }] : others;
    });
    return isAlone;
  }
}
