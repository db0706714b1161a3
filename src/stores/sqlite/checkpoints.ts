import { Worker } from 'node:worker_threads';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import type { Request } from './checkpoint-worker.ts';

/** Commits after which the thread makes a checkpoint. A commit writes 2 to 50 pages. */
const interval = 256;

/**
 * Pages of the write-ahead log at which a commit makes a checkpoint itself: SQLite's default, and with the thread. SQLite
 * begins the log anew once all of it is copied. While commits follow each other the thread never copies the newest, so a
 * commit does that each 64 MB.
 */
const pagesWithoutThread = 1_000;
const pagesWithThread = 16_000;

type State = { readonly is: 'unused' | 'ended' } | { readonly is: 'busy' | 'idle'; readonly thread: Worker };

/**
 * Copies the write-ahead log into the file in another thread. A checkpoint waits for the disk twice, for 5 ms or more. In
 * a commit, as SQLite makes it, that blocks the event loop, and takes a quarter of the time of short runs.
 * The thread starts when there is enough to copy. Where it cannot start, SQLite makes its checkpoints as usual.
 */
export class Checkpoints {
  readonly #path: string;
  /** Sets the number of pages at which a commit makes a checkpoint. */
  readonly #setPages: (pages: number) => void;
  readonly #state: BehaviorSubject<State>;
  #commits = 0;

  constructor(path: string, setPages: (pages: number) => void) {
    this.#path = path;
    this.#setPages = setPages;
    this.#state = new BehaviorSubject<State>({ is: path === ':memory:' ? 'ended' : 'unused' });
  }

  /** Called after each commit. */
  committed(): void {
    this.#commits += 1;
    if (this.#commits < interval) return;
    const { value: state } = this.#state;
    if (state.is === 'unused') this.#start();
    if (state.is === 'idle') this.#ask(state.thread);
  }

  /** Does something at a moment when the thread makes no checkpoint. */
  async whenIdle<T>(work: () => T): Promise<T> {
    for (let state = this.#state.value; state.is === 'busy'; state = this.#state.value) {
      // The program may not end meanwhile.
      state.thread.ref();
      await firstValueFrom(this.#state.pipe(filter(({ is }) => is !== 'busy')));
      state.thread.unref();
    }
    return work();
  }

  /** Resolves when the thread has closed the file. */
  async close(): Promise<void> {
    await this.whenIdle(() => {
      const { value: state } = this.#state;
      this.#state.next({ is: 'ended' });
      if (state.is !== 'idle') return undefined;
      state.thread.ref();
      state.thread.postMessage('close' satisfies Request);
      return new Promise((resolve) => state.thread.once('exit', resolve));
    });
  }

  #start(): void {
    try {
      const url = new URL('./checkpoint-worker.js', import.meta.url);
      const thread = new Worker(url, { workerData: this.#path, execArgv: [], name: 'checkpoints' });
      this.#state.next({ is: 'busy', thread });
      thread.once('message', () => this.#setPages(pagesWithThread));
      thread.on('message', () => this.#state.next({ is: 'idle', thread }));
      thread.on('error', () => this.#end());
      thread.on('exit', () => this.#end());
      // A program may end without closing the store. This has to follow the listener for messages, which refs the thread.
      thread.unref();
    } catch {
      this.#end();
    }
  }

  #ask(thread: Worker): void {
    this.#commits = 0;
    this.#state.next({ is: 'busy', thread });
    thread.postMessage('checkpoint' satisfies Request);
  }

  /** The thread is gone, or could not start. */
  #end(): void {
    if (this.#state.value.is === 'ended') return;
    this.#state.next({ is: 'ended' });
    this.#setPages(pagesWithoutThread);
  }
}
