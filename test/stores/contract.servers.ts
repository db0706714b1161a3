import { join } from 'node:path';
import { afterAll, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { newFolder } from '../support/folder.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { storeContract } from './contract.ts';
import { claimsContract } from './contract-claims.ts';
import { notificationsContract } from './contract-notifications.ts';

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  if (place === undefined) {
    it.skip(`a store: ${name}, skipped without a server`);
    continue;
  }
  storeContract(name, () => openStore(place.url));
  notificationsContract(name, place.url);
  claimsContract(name, () => openStore(place.url));
  afterAll(() => place.remove());
}

const folder = newFolder(afterAll);

storeContract('memory', () => openStore('memory:'), { shared: false });
storeContract('sqlite', () => openStore(`sqlite:${join(folder, 'contract.db')}`), { shared: false });
