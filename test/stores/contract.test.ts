import { join } from 'node:path';
import { afterAll } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { openDatabase } from '../../src/stores/sqlite/driver.ts';
import { newFolder } from '../support/folder.ts';
import { storeContract } from './contract.ts';
import { damageContract } from './contract-damage.ts';

const folder = newFolder(afterAll);

// contract.servers.ts has their costs.
storeContract('memory', () => openStore('memory:'), { shared: false, costs: false });
storeContract('sqlite', () => openStore(`sqlite:${join(folder, 'contract.db')}`), { shared: false, costs: false });
damageContract(
  'sqlite',
  () => openStore(`sqlite:${join(folder, 'damage.db')}`),
  async (run_id) => {
    const db = openDatabase(join(folder, 'damage.db'));
    db.prepare<[string]>("UPDATE runs SET input = '{', status = 'unheard', agent_name = '' WHERE run_id = ?").run(
      run_id,
    );
    db.prepare<[string]>(
      "UPDATE events SET body = '{\"type' WHERE run = (SELECT number FROM runs WHERE run_id = ?)",
    ).run(run_id);
    db.close();
  },
);
