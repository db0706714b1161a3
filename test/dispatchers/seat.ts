import { onTestFinished, vi } from 'vitest';
import type { Dispatcher, Lease } from '../../src/core/dispatcher.ts';
import { openDispatcher } from '../../src/dispatchers/open.ts';

/** A run that was given to a seat, until `end` is called. */
export interface Held {
  readonly run_id: string;
  readonly lease: Lease;
  end(): void;
}

interface Options {
  readonly slots?: number;
  /** Milliseconds. */
  readonly lease?: number;
  readonly settled?: (run_id: string) => Promise<void>;
  /** Ends each run with this. Default: runs are held until the test ends them. */
  readonly work?: (run_id: string) => Promise<void>;
}

/** A process, as far as a dispatcher knows: takes runs and holds them. Closed with the test. */
export class Seat {
  readonly held: Held[] = [];
  readonly settled: string[] = [];
  readonly errors: unknown[] = [];
  readonly dispatcher: Dispatcher;

  private constructor(dispatcher: Dispatcher, errors: unknown[]) {
    this.dispatcher = dispatcher;
    this.errors = errors;
  }

  static async open(url: string, { slots = 4, lease = 4_000, settled, work }: Options = {}): Promise<Seat> {
    const errors: unknown[] = [];
    const dispatcher = await openDispatcher(url, { slots, lease, onError: (error) => errors.push(error) });
    const seat = new Seat(dispatcher, errors);
    onTestFinished(() => seat.close());
    const execute = (run_id: string, held: Lease): Promise<void> => {
      const holding = new Promise<void>((end) => seat.held.push({ run_id, lease: held, end }));
      return work === undefined ? holding : work(run_id);
    };
    await dispatcher.start(execute, async (run_id) => {
      seat.settled.push(run_id);
      await settled?.(run_id);
    });
    return seat;
  }

  get runs(): string[] {
    return this.held.map(({ run_id }) => run_id);
  }

  async offer(...run_ids: string[]): Promise<void> {
    await this.dispatcher.offer(run_ids);
  }

  /** Resolves to a run when it was taken here, for the nth time. */
  taken(run_id: string, times = 1): Promise<Held> {
    return vi.waitFor(() => {
      const found = this.held.filter((one) => one.run_id === run_id)[times - 1];
      if (found === undefined) throw new Error(`${run_id} was taken by nobody here`);
      return found;
    }, waiting);
  }

  /** Resolves when a run that was held here is gone. */
  async gone(run_id: string): Promise<void> {
    await vi.waitFor(() => {
      if (!this.settled.includes(run_id)) throw new Error(`${run_id} is not settled`);
    }, waiting);
  }

  /** Lets go of everything. */
  async close(): Promise<void> {
    await this.dispatcher.pause();
    for (const { end } of this.held) end();
    await this.dispatcher.close();
  }
}

const waiting = { timeout: 12_000, interval: 1 };
