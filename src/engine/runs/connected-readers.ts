import type { OnDisconnect } from '../../core/agent.ts';
import { BoxedMap } from '../../core/collections.ts';
import type { ReaderNodes } from './reader-nodes.ts';

type Nodes = Pick<ReaderNodes, 'enter' | 'disconnect' | 'leave'>;

interface RunReaders {
  readonly run_id: string;
  count: number;
  timer: NodeJS.Timeout | undefined;
  /** What the other nodes know of this one, where `told` resolves to true. */
  known: 'nothing' | 'connected' | 'disconnected';
  /** Never rejects. */
  told: Promise<boolean>;
}

/** What `connect` returns where the policy does nothing, so that the caller need not watch the connection. */
export const unwatched = (): void => {};

/** Counts the connected readers of runs whose disconnect policy cancels them after the last reader, on all nodes. */
export class ConnectedReaders {
  readonly #byRun = new BoxedMap<RunReaders>();
  readonly #nodes: Nodes | undefined;
  readonly #cancel: (run_id: string) => void;
  #isClosed = false;

  /** `nodes` where several nodes share the store. */
  constructor(nodes: Nodes | undefined, cancel: (run_id: string) => void) {
    this.#nodes = nodes;
    this.#cancel = cancel;
  }

  /**
   * Adds a reader. Returns a function to call when the reader leaves: with true where the client disconnected before
   * the end of the response. Only then does the policy apply.
   */
  connect(run_id: string, policy: string): (disconnected: boolean) => void {
    if (policy === 'continue' || this.#isClosed) return unwatched;
    const readers: RunReaders = this.#byRun.get(run_id) ?? {
      run_id,
      count: 0,
      timer: undefined,
      known: 'nothing',
      told: Promise.resolve(true),
    };
    this.#byRun.set(run_id, readers);
    clearTimeout(readers.timer);
    readers.count += 1;
    this.#enter(readers);
    let connected = true;
    return (disconnected) => {
      if (!connected || this.#isClosed) return;
      connected = false;
      readers.count -= 1;
      if (readers.count > 0) return;
      if (disconnected) this.#beginGrace(readers, graceOf(policy));
      else void this.#leave(readers, false);
    };
  }

  /** Removes all readers, those to come as well: the server stops. Resolves when the other nodes know it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(
      this.#byRun.all().map((readers) => {
        clearTimeout(readers.timer);
        return this.#leave(readers, false);
      }),
    );
  }

  #enter(readers: RunReaders): void {
    if (readers.known === 'connected') return;
    readers.known = 'connected';
    // Where the store fails, the readers of this node do not count for others.
    this.#tell(readers, (nodes) => nodes.enter(readers.run_id));
  }

  /** The other nodes know of the disconnect meanwhile: to one of them the client may come back, and be answered there. */
  #beginGrace(readers: RunReaders, grace: number): void {
    readers.timer = setTimeout(() => void this.#leave(readers, true), grace);
    // The client has no time to come back: one write less.
    if (grace === 0) return;
    readers.known = 'disconnected';
    this.#tell(readers, (nodes) => nodes.disconnect(readers.run_id));
  }

  #tell(readers: RunReaders, tell: (nodes: Nodes) => Promise<void>): void {
    const nodes = this.#nodes;
    if (nodes === undefined) return;
    readers.told = readers.told
      .then(() => tell(nodes))
      .then(
        () => true,
        () => false,
      );
  }

  /** Cancels the run where its client has disconnected, and no reader is left at any node. */
  async #leave(readers: RunReaders, disconnected: boolean): Promise<void> {
    const { run_id, known } = readers;
    readers.known = 'nothing';
    const nodes = this.#nodes;
    if (nodes !== undefined) {
      // A store that fails cannot cancel a run either.
      const left = readers.told
        .then((isTold) => nodes.leave(run_id, isTold && known === 'disconnected'))
        .catch(() => false);
      readers.told = left;
      const isLast = await left;
      // A reader has come meanwhile.
      if (readers.told !== left) return;
      if (!isLast) disconnected = false;
    }
    this.#byRun.delete(run_id);
    if (disconnected) this.#cancel(run_id);
  }
}

const graceOf = (policy: string): number => Number(/^grace=(\d+(?:\.\d+)?)$/.exec(policy)?.[1] ?? 0) * 1000;

/** Whether a text is a disconnect policy. */
export const isOnDisconnect = (text: string): text is OnDisconnect =>
  text === 'continue' || text === 'cancel' || /^grace=\d{1,6}(\.\d{1,3})?$/.test(text);
