import { spawnSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/stores/sqlite/driver.ts';
import type { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { eventually } from '../support/eventually.ts';
import { newFolder } from '../support/folder.ts';
import { append, fresh } from './writes.ts';

const compiled = pathToFileURL('dist/stores/sqlite/sqlite-store.js').href;
const folder = newFolder(afterAll);
let files = 0;

/** Runs a program that opens a store and makes 300 commits, so that its thread has started. */
function runProgram(rest: string, env: NodeJS.ProcessEnv = {}) {
  const program = `
    import { SqliteStore } from ${JSON.stringify(compiled)};
    const store = new SqliteStore(${JSON.stringify(join(folder, `${++files}.db`))});
    for (let n = 0; n < 300; n += 1) await store.compareAndSet('unknown', 'targets', null, null);
    ${rest}
    process.stdout.write('done');`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, ...env },
  });
  return { stdout, stderr, status };
}

const ended = { stdout: 'done', stderr: '', status: 0 };

describe('the thread of checkpoints', () => {
  it('lets a program end that has not closed its store', () => {
    expect(runProgram('')).toEqual(ended);
  });

  it('keeps a program from ending amid an erasure', () => {
    expect(runProgram("await store.removeOwner('key:x'); await store.close();")).toEqual(ended);
  });

  it.runIf(process.platform === 'linux')('gives its thread the lowest priority, and no other thread', () => {
    const rest = `
      import { readdirSync, readFileSync } from 'node:fs';
      const niceOf = (task) => readFileSync('/proc/self/task/' + task + '/stat', 'utf8').split(') ')[1].split(' ')[16];
      const all = () => readdirSync('/proc/self/task').map(niceOf);
      while (!all().includes('19')) await new Promise(setImmediate);
      await store.close();
      process.stdout.write(niceOf(process.pid) + ' ' + all().filter((nice) => nice === '19').length + ' ');`;
    expect(runProgram(rest)).toEqual({ ...ended, stdout: '0 0 done' });
  });

  it('closes, although a preloaded module keeps its thread busy', () => {
    const preload = join(folder, 'preload.cjs');
    writeFileSync(preload, "if (!require('node:worker_threads').isMainThread) setInterval(() => {}, 1000);");
    expect(runProgram('await store.close();', { NODE_OPTIONS: `--require ${preload}` })).toEqual(ended);
  });

  it('makes the log small again when a long reader has left, also where nothing more is written', async () => {
    const { SqliteStore: Store } = (await import(compiled)) as { SqliteStore: typeof SqliteStore };
    const path = join(folder, `${++files}.db`);
    const store = new Store(path);
    const megabytes = (): number => statSync(`${path}-wal`).size / 2 ** 20;
    const reader = openDatabase(path);
    reader.exec('BEGIN; SELECT count(*) FROM runs');
    const long = [`"${'x'.repeat(1_000_000)}"`];
    while (megabytes() < 100) await store.commit([append(fresh(), long)]);
    // So many that the thread makes a checkpoint.
    for (let n = 0; n < 300; n += 1) await store.compareAndSet('unknown', 'targets', null, null);
    expect(megabytes()).toBeGreaterThan(100);
    reader.exec('COMMIT');
    await eventually(() => expect(megabytes()).toBeLessThan(64));
    reader.close();
    await store.close();
  });
});
