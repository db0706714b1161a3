import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { RunRow, Write } from '../../src/core/ports/run-store.ts';
import { openDatabase } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { newFolder } from '../support/folder.ts';
import { delivery } from './contract-outbox.ts';
import { keyOf, ownedRow } from './contract-owners.ts';
import { append, end, messageOf } from './writes.ts';

const folder = newFolder(afterAll);

/** All bytes of a store's files. */
const bytesOf = (path: string): string =>
  ['', '-wal'].map((end) => (existsSync(path + end) ? readFileSync(path + end, 'latin1') : '')).join('');

/** Writes of a run that put a text into every kind of stored data. The last events are long enough for pages of their own. */
function writesWith(text: string, row: RunRow): Write[] {
  const resource = { session_id: row.session_id, run_id: null, content_type: 'text/plain' };
  const state = { ...resource, resource_id: `state-${row.run_id}`, body: `state of ${text}` };
  const first = append({ ...row, title: text }, [JSON.stringify(text)], {
    ...messageOf(row, text),
    input: [{ role: 'user', parts: [{ content_type: 'text/plain', content: text }] }],
    journal: [JSON.stringify(text)],
    key: { ...keyOf(row, row.run_id), hash: text },
    deliveries: [delivery(1, { body: text, url: `https://${text}.example/` })],
  });
  const grown = append(first.row, [JSON.stringify(text.repeat(500))], { grown: true });
  const second = append({ ...grown.row, status: 'awaiting', trace: text }, [JSON.stringify(text.repeat(2_000))], {
    resources: [state],
    state: `/resources/${state.resource_id}`,
    history: [`https://${text}.example/seen`],
  });
  return [first, grown, second, end({ ...second.row, trace: null }, 'completed', { ended: { tokens: 1, seconds: 1 } })];
}

it('leaves no text of an erased owner in the file, and all of the others', async () => {
  const path = join(folder, 'erase.db');
  const store = new SqliteStore(path);
  const [gone, kept] = ['gone-with-the-owner', 'kept-for-the-other'];
  for (let n = 0; n < 20; n += 1) {
    const writes = [gone, kept].map((text) => writesWith(text, ownedRow(`key:${text}`)));
    for (const step of [0, 1, 2, 3]) {
      const taken = await store.commit(writes.flatMap((run) => run.slice(step, step + 1)));
      expect(taken).toEqual(['taken', 'taken']);
    }
  }
  const at = '2002-01-01T00:00:00.000Z';
  for (const claimed of await store.outbox.claimDeliveries(at, at, 100)) {
    await store.outbox.finishDelivery(claimed, { state: 'failed', attempted_at: at, status: null, error: claimed.url });
  }
  expect(await store.outbox.urlFailures(`key:${gone}`, `https://${gone}.example/`)).toMatchObject({ attempts: 20 });
  expect(bytesOf(path)).toContain(gone);
  const [first] = await store.runs({ owner: `key:${gone}` }, undefined, 1);
  await store.remove(first?.run_id ?? '');
  for (const session_id of await store.sessionsOf(`key:${gone}`, 100)) await store.removeSession(session_id);
  await store.removeOwner(`key:${gone}`);
  expect(bytesOf(path)).not.toContain(gone);
  expect(bytesOf(path)).toContain(kept);
  expect(await store.runs({ owner: `key:${kept}` }, undefined, 100)).toHaveLength(20);
  const after = append(ownedRow(`key:${kept}`), ['1']);
  expect(await store.commit([after])).toEqual(['taken']);
  await store.close();
  const again = new SqliteStore(path);
  expect(await again.run(after.row.run_id)).toEqual(after.row);
  await again.close();
  const file = openDatabase(path);
  expect(file.prepare('PRAGMA integrity_check').all()).toMatchObject([{ integrity_check: 'ok' }]);
  file.close();
});

it('says that removed data may be left while another program reads the file', async () => {
  const path = join(folder, 'read.db');
  const store = new SqliteStore(path);
  const row = ownedRow('key:read');
  await store.commit(writesWith('text', row).slice(0, 1));
  const reader = openDatabase(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM runs').get();
  await expect(store.removeOwner('key:read')).rejects.toThrow(`another program reads ${path}`);
  reader.exec('COMMIT');
  reader.close();
  await store.removeOwner('key:read');
  await store.close();
});
