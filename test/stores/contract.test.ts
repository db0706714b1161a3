import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { openDatabase } from '../../src/stores/sqlite-driver.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { storeContract } from './contract.ts';
import { damageContract } from './contract-damage.ts';
import { watchingContract } from './contract-watching.ts';

const folder = mkdtempSync(join(tmpdir(), 'rivulet-'));
afterAll(() => rmSync(folder, { recursive: true }));

storeContract('memory', () => openStore('memory:'), { shared: false });
storeContract('sqlite', () => openStore(`sqlite:${join(folder, 'contract.db')}`), { shared: false });
damageContract(
  'sqlite',
  () => openStore(`sqlite:${join(folder, 'damage.db')}`),
  async (run_id) => {
    const db = openDatabase(join(folder, 'damage.db'));
    db.prepare<[string]>("UPDATE runs SET input = '{', status = 'unheard', agent_name = '' WHERE run_id = ?").run(
      run_id,
    );
    db.prepare<[string]>("UPDATE events SET body = '{\"type' WHERE run_id = ?").run(run_id);
    db.close();
  },
);

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  if (place === undefined) {
    it.skip(`a store: ${name}, for which there is no server`);
    continue;
  }
  storeContract(name, () => openStore(place.url));
  watchingContract(name, place.url);
  afterAll(() => place.remove());
}
