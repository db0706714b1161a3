import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { type Client, ClientError, type Diagnostic } from '../../client/client.ts';
import { messageOf } from '../../core/json.ts';
import { isSettled } from '../../core/run-state.ts';
import { backoff, Delay } from '../../core/timing.ts';
import { usePlayground } from '../app/playground.ts';
import type { FollowedRun } from '../conversation/conversation.ts';
import { formatNumber } from '../elements/format.ts';

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
  #reading = false;
  /** Whether the next read begins at once. */
  #atOnce = true;
  readonly #pause = new Delay();
  readonly #abort = new AbortController();

  constructor(client: Pick<Client, 'diagnostics'>, run_id: string) {
    this.#client = client;
    this.#run_id = run_id;
  }

  /** The run has so many events; `settled`: it is final or awaits. */
  offer(events: number, settled: boolean): void {
    this.#wanted = events;
    if (settled && events > this.#read) {
      this.#atOnce = true;
      this.#pause.end();
    }
    if (!this.#reading) void this.#readNew();
  }

  close(): void {
    this.#abort.abort();
    this.#pause.close();
  }

  async #readNew(): Promise<void> {
    this.#reading = true;
    while (this.#wanted > this.#read && !this.full.peek() && this.state.peek() !== 'forbidden') {
      if (!this.#atOnce) await this.#pause.wait(backoff(this.#reads + 1, firstDelay, maxDelay));
      if (this.#pause.closed) return;
      this.#reads += 1;
      this.#atOnce = false;
      this.#read = this.#wanted;
      const state = await this.#readPages().then((): DiagnosticsState => 'read', stateAfter);
      // A read that is closed ends with the reason of its abort, which is no problem of the run.
      if (this.#pause.closed) return;
      this.state.value = state;
    }
    this.#reading = false;
  }

  async #readPages(): Promise<void> {
    const { signal } = this.#abort;
    for (let more = true; more && !this.full.peek(); ) {
      const before = this.entries.peek();
      const { diagnostics, next } = await this.#client.diagnostics(this.#run_id, before.length, { signal });
      signal.throwIfAborted();
      for (const one of diagnostics) this.#chars += JSON.stringify(one).length;
      if (diagnostics.length > 0) this.entries.value = [...before, ...diagnostics];
      this.full.value = this.entries.peek().length >= maxEntries || this.#chars >= maxChars;
      more = next !== undefined;
    }
  }
}

function stateAfter(error: unknown): DiagnosticsState {
  if (error instanceof ClientError && error.status === 403) return 'forbidden';
  return { problem: messageOf(error) };
}

/** The model calls and log lines of the followed run, for as long as the component is in the page; read where `wanted`. */
export function useDiagnostics({ record }: FollowedRun, wanted = true): RunDiagnostics {
  const { client } = usePlayground();
  const { run_id, eventCount, run } = record;
  const diagnostics = useMemo(() => new RunDiagnostics(client, run_id), [client, run_id]);
  useEffect(() => () => diagnostics.close(), [diagnostics]);
  useEffect(() => {
    if (wanted) diagnostics.offer(eventCount, run !== undefined && isSettled(run.status));
  }, [diagnostics, eventCount, run, wanted]);
  return diagnostics;
}

interface NoteProps {
  readonly diagnostics: RunDiagnostics;
  readonly what: string;
  /** What is said where there are none. */
  readonly empty: ComponentChildren;
}

/** Why there are no diagnostics, or not all. */
export function DiagnosticsNote({ diagnostics: { state, full, entries }, what, empty }: NoteProps) {
  if (state.value === 'reading') return <p class="note">Reading…</p>;
  if (state.value === 'forbidden')
    return (
      <p class="note">
        {what} are for callers with the scope <code>admin</code>, which your key or token does not have.
      </p>
    );
  if (typeof state.value === 'object') return <p class="problem">{state.value.problem}</p>;
  if (full.value)
    return (
      <p class="note">The page shows the first {formatNumber(entries.value.length)} entries; the server has more.</p>
    );
  return empty ? <p class="note">{empty}</p> : null;
}
