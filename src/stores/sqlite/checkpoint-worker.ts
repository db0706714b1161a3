import { existsSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from './driver.ts';

// The thread of `Checkpoints`. It makes one checkpoint for each message, and answers when that is done.

/** What the thread is told. */
export type Request = 'checkpoint' | 'close';

const path = String(workerData);
// To open a file that was deleted would make an empty one. `process.exit()` would not do: newer Nodes crash when a thread
// ends so while its module is loaded.
if (!existsSync(path)) throw new Error(`${path} is gone`);
const db = openDatabase(path);
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');

parentPort?.on('message', (request: Request) => {
  if (request === 'close') {
    db.close();
    // Ends the thread, also where a module that NODE_OPTIONS preloads has timers or sockets here.
    process.exit();
  }
  try {
    checkpoint.get();
  } catch {
    // As where the disk is full. The commits stay in the write-ahead log, and a later checkpoint copies them.
  }
  parentPort?.postMessage('done');
});
parentPort?.postMessage('ready');
