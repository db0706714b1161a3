import { signal } from '@preact/signals';
import { type Client, ClientError, type Diagnostic } from '../client/client.ts';
import { backoff } from '../core/timing.ts';

/** Entries and characters that the page keeps of a run; the server has all of them. */
const maxEntries = 5_000;
const maxChars = 16 * 1024 * 1024;
/** Milliseconds between two reads while the run goes on: they grow from the first to the longest. */
const firstDelay = 500;
const maxDelay = 15_000;

export type DiagnosticsState =
  /** `forbidden`: the caller lacks the scope `admin`. */
  'reading' | 'read' | 'forbidden' | { readonly problem: string };

/**
 * The model calls and log lines of a run. It reads those that are new when the run has more events: at once when the run
 * settles, and else after a delay that grows. A run without new events causes no requests.
 */
export class RunDiagnostics {
  readonly entries = signal<readonly Diagnostic[]>([]);
  readonly state = signal<DiagnosticsState>('reading');
  /** Whether there are more than the page keeps. */
  readonly full = signal(false);
  readonly #client: Pick<Client, 'diagnostics'>;
  readonly #run_id: string;
  /** The number of events when the last read began, and the newest number. */
  #read = -1;
  #wanted = 0;
  #chars = 0;
  #reads = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reading = false;
  /** Whether the next read begins at once. */
  #atOnce = true;
  #abort = new AbortController();

  constructor(client: Pick<Client, 'diagnostics'>, run_id: string) {
    this.#client = client;
    this.#run_id = run_id;
  }

  /** The run has so many events; `settled`: it is final or awaits. */
  offer(events: number, settled: boolean): void {
    this.#wanted = events;
    this.#atOnce ||= settled && events > this.#read;
    this.#schedule();
  }

  close(): void {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#reading || this.#abort.signal.aborted || this.#wanted <= this.#read) return;
    if (this.full.peek() || this.state.peek() === 'forbidden') return;
    if (this.#atOnce) void this.#readNew();
    else this.#timer ??= setTimeout(() => void this.#readNew(), backoff(this.#reads + 1, firstDelay, maxDelay));
  }

  async #readNew(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#reading = true;
    this.#reads += 1;
    this.#atOnce = false;
    this.#read = this.#wanted;
    try {
      await this.#readPages();
      this.state.value = 'read';
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      const isForbidden = error instanceof ClientError && error.status === 403;
      this.state.value = isForbidden
        ? 'forbidden'
        : { problem: error instanceof Error ? error.message : String(error) };
    } finally {
      this.#reading = false;
    }
    this.#schedule();
  }

  async #readPages(): Promise<void> {
    const { signal } = this.#abort;
    for (let more = true; more && !this.full.peek(); ) {
      const before = this.entries.peek();
      const { diagnostics, next } = await this.#client.diagnostics(this.#run_id, before.length, { signal });
      for (const one of diagnostics) this.#chars += JSON.stringify(one).length;
      if (diagnostics.length > 0) this.entries.value = [...before, ...diagnostics];
      this.full.value = this.entries.peek().length >= maxEntries || this.#chars >= maxChars;
      more = next !== undefined;
    }
  }
}
