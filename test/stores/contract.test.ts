import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { storeContract } from './contract.ts';

const folder = mkdtempSync(join(tmpdir(), 'rivulet-'));
afterAll(() => rmSync(folder, { recursive: true }));

storeContract('memory', () => openStore('memory:'), { shared: false });
storeContract('sqlite', () => openStore(`sqlite:${join(folder, 'contract.db')}`), { shared: false });
