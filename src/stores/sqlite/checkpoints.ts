import { Worker } from 'node:worker_threads';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import type { Answer, Request } from './checkpoint-worker.ts';

/** Commits after which the thread makes a checkpoint. A commit writes 2 to 50 pages. */
const interval = 256;

/**
 * Pages of the write-ahead log at which a commit makes a checkpoint itself: SQLite's default, and with the thread. SQLite
 * begins the log anew once all of it is copied. While commits follow each other the thread never copies the newest, so a
 * commit does that each 64 MB.
 */
const pagesWithoutThread = 1_000;
const pagesWithThread = 16_000;
const pageSize = 4_096;

/** Bytes to which SQLite truncates the log when it begins the log anew. */
export const logSizeLimit = pagesWithThread * pageSize;
/** Milliseconds until the thread tries again to copy a log that has grown beyond that, because a program reads it. */
const tryAgain = 1_000;

type State = { readonly is: 'unused' | 'ended' } | { readonly is: 'busy' | 'idle'; readonly thread: Worker };

/**
 * Copies the write-ahead log into the file in another thread. A checkpoint waits for the disk twice, for 5 ms or more. In
 * a commit, as SQLite makes it, that blocks the event loop, and takes a quarter of the time of short runs.
 * The thread starts when there is enough to copy. Where it cannot start, SQLite makes its checkpoints as usual.
 * While another program reads the file for long, SQLite cannot begin the log anew, and the log grows. When the reader has
 * left, the thread copies the rest, and a commit begins the log anew: at once, also where nothing else is written.
 */
export class Checkpoints {
  readonly #path: string;
  /** Sets the number of pages at which a commit makes a checkpoint. */
  readonly #setPages: (pages: number) => void;
  /** Makes a commit. */
  readonly #commit: () => void;
  readonly #state: BehaviorSubject<State>;
  #commits = 0;
  /** While the log is larger than its limit. */
  #timer: NodeJS.Timeout | undefined;

  constructor(path: string, setPages: (pages: number) => void, commit: () => void) {
    this.#path = path;
    this.#setPages = setPages;
    this.#commit = commit;
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
      await firstValueFrom(this.#state.pipe(filter(({ is }) => is !== 'busy')));
    }
    return work();
  }

  /** Resolves when the thread has closed the file. */
  async close(): Promise<void> {
    await this.whenIdle(() => {
      const { value: state } = this.#state;
      this.#state.next({ is: 'ended' });
      clearTimeout(this.#timer);
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
      thread.on('message', (answer: Answer) => {
        // A program may end without closing the store, but not while the thread is in native code: the process may abort then.
        thread.unref();
        this.#state.next({ is: 'idle', thread });
        this.#shorten(answer);
      });
      thread.on('error', () => this.#end());
      thread.on('exit', () => this.#end());
    } catch {
      this.#end();
    }
  }

  #ask(thread: Worker): void {
    this.#commits = 0;
    this.#state.next({ is: 'busy', thread });
    thread.ref();
    thread.postMessage('checkpoint' satisfies Request);
  }

  /** Begins a log anew that has grown beyond its limit, as soon as all of it is copied. */
  #shorten({ log, checkpointed }: Answer): void {
    clearTimeout(this.#timer);
    if (this.#state.value.is === 'ended' || log <= pagesWithThread) return;
    if (checkpointed === log) this.#commit();
    this.#timer = setTimeout(() => {
      const { value: state } = this.#state;
      if (state.is === 'idle') this.#ask(state.thread);
    }, tryAgain).unref();
  }

  /** The thread is gone, or could not start. */
  #end(): void {
    if (this.#state.value.is === 'ended') return;
    this.#state.next({ is: 'ended' });
    clearTimeout(this.#timer);
    this.#setPages(pagesWithoutThread);
  }
}
