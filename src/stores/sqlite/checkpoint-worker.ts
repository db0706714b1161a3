import { existsSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from './driver.ts';

// The thread of `Checkpoints`. It makes one checkpoint when it starts and one for each message, and answers when that is done.

/** What the thread is told. */
export type Request = 'checkpoint' | 'close';

/** What the thread answers: the pages of the write-ahead log after the checkpoint, and how many of them are copied. */
export interface Answer {
  readonly log: number;
  readonly checkpointed: number;
}

const nothing: Answer = { log: 0, checkpointed: 0 };

// Where this thread shares a processor with the event loop, it has to let requests go first. With the same priority it
// delays one request in ten, by some milliseconds. Only Linux has a priority for each thread; elsewhere this would be
// that of the whole process.
if (process.platform === 'linux') {
  try {
    setPriority(0, constants.priority.PRIORITY_LOW);
  } catch {
    // A sandbox may refuse it. The thread then has the usual priority.
  }
}

const path = String(workerData);
// To open a file that was deleted would make an empty one. `process.exit()` would not do: newer Nodes crash when a thread
// ends so while its module is loaded.
if (!existsSync(path)) throw new Error(`${path} is gone`);
const db = openDatabase(path);
const checkpoint = db.prepare<[], Answer>('PRAGMA wal_checkpoint(PASSIVE)');

function copy(): void {
  let answer: Answer | undefined;
  try {
    answer = checkpoint.get();
  } catch {
    // As where the disk is full. The commits stay in the write-ahead log, and a later checkpoint copies them.
  }
  parentPort?.postMessage(answer ?? nothing);
}

parentPort?.on('message', (request: Request) => {
  if (request === 'close') {
    db.close();
    // Ends the thread, also where a module that NODE_OPTIONS preloads has timers or sockets here.
    process.exit();
  }
  copy();
});
copy();
