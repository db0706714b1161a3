import { afterEach, beforeEach, describe } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import { costsContract } from './contract-costs.ts';
import { listsContract } from './contract-lists.ts';
import { outboxContract } from './contract-outbox.ts';
import { ownersContract } from './contract-owners.ts';
import { runsContract } from './contract-runs.ts';
import { sessionsContract } from './contract-sessions.ts';
import { sharingContract } from './contract-sharing.ts';

/**
 * The contract of every store. `open` opens the same stored data each time; a shared store may be open twice. Without
 * `costs`, it leaves out what needs much data.
 */
export function storeContract(name: string, open: () => Promise<Store>, { shared = true, costs = true } = {}): void {
  describe(`a store: ${name}`, () => {
    let store: Store;

    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    runsContract(() => store, name);
    sessionsContract(() => store);
    listsContract(() => store);
    outboxContract(() => store);
    ownersContract(() => store);
    if (costs) costsContract(() => store);
    if (shared) sharingContract(() => store, open);
  });
}
