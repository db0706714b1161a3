import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { storeContract } from './contract.ts';

const folder = mkdtempSync(join(tmpdir(), 'rivulet-'));
afterAll(() => rmSync(folder, { recursive: true }));

let file = 0;
storeContract('memory', () => openStore('memory:'));
storeContract('sqlite', () => openStore(`sqlite:${join(folder, `${++file}.db`)}`));
