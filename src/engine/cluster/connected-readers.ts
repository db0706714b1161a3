import { BoxedMap } from '../../core/collections.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import { retryOwed } from '../store/store-calls.ts';
import { hasLostReaders, hasReaders, type ReaderNodes } from './reader-nodes.ts';

type Nodes = Pick<ReaderNodes, 'enter' | 'disconnect' | 'leave' | 'bury'>;

interface RunReaders {
  readonly run_id: string;
  /** Milliseconds. */
  readonly grace: number;
  /** Where the readers are known to other nodes, and to the next process. */
  readonly nodes: Nodes | undefined;
  count: number;
  timer: NodeJS.Timeout | undefined;
  /** What this node has told the other nodes of its readers. They know it where `told` resolves to true. */
  known: 'nothing' | 'connected' | 'disconnected';
  /** Whether the store took the last write that told the other nodes. Never rejects. */
  told: Promise<boolean>;
  /** While this node leaves the run: whether it is the last node with readers. Never rejects. */
  leaving?: Promise<boolean> | undefined;
}

/** What `connect` returns where the policy does nothing, so that the caller need not watch the connection. */
export const unwatched = (): void => {};

/** Counts the connected readers of runs whose disconnect policy cancels them after the last reader, on all nodes. */
export class ConnectedReaders {
  readonly #byRun = new BoxedMap<RunReaders>();
  readonly #nodes: Nodes;
  readonly #cancel: (run_id: string) => void;
  #isClosed = false;

  constructor(nodes: Nodes, cancel: (run_id: string) => void) {
    this.#nodes = nodes;
    this.#cancel = cancel;
  }

  /**
   * Adds a reader. Returns a function to call when the reader leaves: with true where the client disconnected before
   * the end of the response. Only then does the policy apply. `isKept`: another process may go on with the run.
   */
  connect(run_id: string, policy: string, isKept: boolean): (disconnected: boolean) => void {
    if (policy === 'continue' || this.#isClosed) return unwatched;
    const readers = this.#byRun.get(run_id) ?? this.#add(run_id, graceOf(policy), isKept ? this.#nodes : undefined);
    clearTimeout(readers.timer);
    readers.count += 1;
    if (readers.known !== 'connected') this.#tellOfReaders(readers);
    let connected = true;
    return (disconnected) => {
      if (!connected || this.#isClosed) return;
      connected = false;
      readers.count -= 1;
      if (readers.count > 0) return;
      if (disconnected) this.#beginGrace(readers, readers.grace);
      else void this.#leave(readers, false);
    };
  }

  /** An earlier process had readers of a run, and has died. The readers have `least` milliseconds or more to come back. */
  recover(row: RunRow, least: number): void {
    if (!hasReaders(row) || this.#byRun.get(row.run_id) !== undefined) return;
    const grace = graceOf(row.on_disconnect);
    this.#beginGrace(this.#add(row.run_id, grace, this.#nodes), Math.max(grace, least));
  }

  /** Cancels a run whose readers were at nodes that have died, and have not come back. Called again and again. */
  async check(row: RunRow): Promise<void> {
    if (!hasLostReaders(row) || this.#byRun.get(row.run_id) !== undefined) return;
    if (await this.#nodes.bury(row.run_id)) this.#cancel(row.run_id);
  }

  /** Tells the other nodes that this one has not died. Called again and again. */
  renew(): void {
    for (const readers of this.#byRun.all()) if (readers.known === 'connected') this.#tellOfReaders(readers);
  }

  /**
   * Removes all readers, because the server stops, and adds no more. Resolves when the other nodes know it. They keep what
   * they know of clients that have disconnected: other nodes, or the next process, cancel the runs of these clients.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(
      this.#byRun.all().map((readers) => {
        clearTimeout(readers.timer);
        return readers.count === 0 ? (readers.leaving ?? readers.told) : this.#leave(readers, false);
      }),
    );
  }

  #add(run_id: string, grace: number, nodes: Nodes | undefined): RunReaders {
    const told = Promise.resolve(true);
    const readers: RunReaders = { run_id, grace, nodes, count: 0, timer: undefined, known: 'nothing', told };
    this.#byRun.set(run_id, readers);
    return readers;
  }

  /** Where the store fails, the readers of this node do not count for others. */
  #tellOfReaders(readers: RunReaders): void {
    readers.known = 'connected';
    this.#tell(readers, (nodes) => nodes.enter(readers.run_id, readers.grace));
  }

  /** The other nodes are told of the disconnect, because the client may come back at one of them. */
  #beginGrace(readers: RunReaders, grace: number): void {
    readers.timer = setTimeout(() => void this.#leave(readers, true), grace);
    // The client has no time to come back: one write less.
    if (grace === 0) return;
    readers.known = 'disconnected';
    this.#tell(readers, (nodes) => nodes.disconnect(readers.run_id, grace));
  }

  #tell(readers: RunReaders, tell: (nodes: Nodes) => Promise<void>): void {
    const { nodes, leaving, told } = readers;
    if (nodes === undefined) return;
    readers.leaving = undefined;
    readers.told = (leaving ?? told)
      .then(() => tell(nodes))
      .then(
        () => true,
        () => false,
      );
  }

  /** Cancels the run where its client has disconnected, and no reader is left at any node. */
  async #leave(readers: RunReaders, disconnected: boolean): Promise<void> {
    const { run_id, known, nodes, told } = readers;
    readers.known = 'nothing';
    if (nodes === undefined) return this.#remove(run_id, disconnected);
    const leaving: Promise<boolean> = told
      .then((isTold) =>
        retryOwed(
          () => readers.leaving === leaving && !this.#isClosed,
          () => nodes.leave(run_id, isTold && known === 'disconnected'),
        ),
      )
      .catch(() => false);
    readers.leaving = leaving;
    const isLast = await leaving;
    // Otherwise a reader has come meanwhile.
    if (readers.leaving === leaving) this.#remove(run_id, disconnected && isLast);
  }

  #remove(run_id: string, cancels: boolean): void {
    this.#byRun.delete(run_id);
    if (cancels) this.#cancel(run_id);
  }
}

const graceOf = (policy: string): number => Number(/^grace=(\d+(?:\.\d+)?)$/.exec(policy)?.[1] ?? 0) * 1000;
