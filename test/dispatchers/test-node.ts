import { EventEmitter } from 'node:events';
import { onTestFinished } from 'vitest';
import type { Dispatcher, Execute, Lease } from '../../src/core/dispatcher.ts';
import { openDispatcher } from '../../src/dispatchers/open.ts';

/** A run that a node executes until `end` is called. */
export interface Held {
  readonly run_id: string;
  readonly lease: Lease;
  end(): void;
}

interface Options {
  readonly slots?: number;
  /** Milliseconds. */
  readonly lease?: number;
  /** Whether runs have ended when they leave. Default: they only leave. */
  readonly ended?: boolean;
  readonly settled?: (run_id: string) => Promise<void>;
  /** Ends each run with this. Default: runs are held until the test ends them. */
  readonly work?: (run_id: string) => Promise<void>;
}

/** A node of a dispatcher that takes runs and holds them. Closed after the test. */
export class TestNode {
  readonly held: Held[] = [];
  readonly settled: string[] = [];
  readonly errors: unknown[] = [];
  readonly dispatcher: Dispatcher;
  /** Emits `change` when a run is taken or settled. */
  readonly #runs = new EventEmitter().setMaxListeners(0);

  private constructor(dispatcher: Dispatcher, errors: unknown[]) {
    this.dispatcher = dispatcher;
    this.errors = errors;
  }

  static async open(
    url: string,
    { slots = 4, lease = 4_000, ended = false, settled, work }: Options = {},
  ): Promise<TestNode> {
    const errors: unknown[] = [];
    const dispatcher = await openDispatcher(url, { slots, lease, onError: (error) => errors.push(error) });
    const node = new TestNode(dispatcher, errors);
    onTestFinished(() => node.close());
    const execute = async (run_id: string, held: Lease): ReturnType<Execute> => {
      const holding = new Promise<void>((end) => node.held.push({ run_id, lease: held, end }));
      node.#runs.emit('change');
      await (work === undefined ? holding : work(run_id));
      return ended ? 'ended' : 'left';
    };
    await dispatcher.start(execute, async (run_id) => {
      node.settled.push(run_id);
      node.#runs.emit('change');
      await settled?.(run_id);
    });
    return node;
  }

  get runs(): string[] {
    return this.held.map(({ run_id }) => run_id);
  }

  async offer(...run_ids: string[]): Promise<void> {
    await this.dispatcher.offer(run_ids);
  }

  /** Resolves to a run when this node has taken it, for the nth time. */
  taken(run_id: string, times = 1): Promise<Held> {
    return this.#first(() => this.held.filter((one) => one.run_id === run_id)[times - 1]);
  }

  /** Resolves when a run of this node is settled. */
  async isSettled(run_id: string): Promise<void> {
    await this.#first(() => this.settled.find((one) => one === run_id));
  }

  /** Resolves to what `find` finds, now or after a later change. */
  #first<T>(find: () => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = find();
        if (found === undefined) return;
        this.#runs.off('change', look);
        resolve(found);
      };
      this.#runs.on('change', look);
      look();
    });
  }

  /** Ends all runs and closes the dispatcher. */
  async close(): Promise<void> {
    await this.dispatcher.pause();
    for (const { end } of this.held) end();
    await this.dispatcher.close();
  }
}
