import type { Agent } from '../../src/core/agent.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { Registry } from '../../src/engine/agents/registry.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { AcceptedRun, RunOptions } from '../../src/engine/runs/create.ts';
import type { RunCreateRequest } from '../../src/schema/api.ts';
import type { AwaitResumeInput } from '../../src/schema/run.ts';
import type { Ledger } from './ledger.ts';

/** The time-outs of the simulated nodes: shorter than in production, so that all of them pass in a simulation. */
const limits = {
  cancelGrace: 1_500,
  runTimeout: 45_000,
  awaitTimeout: 15_000,
  idleTimeout: 25_000,
  passivateAfter: 3_000,
  attempts: 12,
  runTtl: 0,
  shutdownGrace: 2_000,
  sweepInterval: 1_000,
  lease: 5_000,
  pollInterval: 2_000,
  requestTimeout: 2_500,
} satisfies Partial<Limits>;

/** How many runs a node of a shared store executes at once. One that is alone refuses further ones. */
const running = 4;

/** The events of a stream's client. */
export interface Listener {
  line(id: number, line: string): void;
  /** The stream has ended, or its connection broke. */
  end(error?: unknown): void;
}

/**
 * One node as its clients see it: an engine, and the routes of the protocol. Only this file of the simulation calls the
 * engine's methods.
 */
export class SimNode {
  readonly name: string;
  readonly #engine: Engine;
  readonly #ledger: Ledger;

  constructor(name: string, agents: Agent[], store: Store, ledger: Ledger, more: Partial<Limits>) {
    this.name = name;
    this.#ledger = ledger;
    const recordAt = (level: string) => (text: string) => ledger.record(name, `${level}: ${text}`);
    this.#engine = new Engine({
      registry: new Registry(agents.map((agent) => ({ agent, source: 'the simulation' }))),
      store,
      fetchResource: async () => {
        throw new Error('there are no other servers');
      },
      publicUrl: () => 'http://simulated',
      logFor: (run_id) => {
        const logAt = (level: string) => (text: string) => recordAt(level)(`${run_id} ${text}`);
        return { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
      },
      onFailure: (error) => recordAt('failure')(String(error)),
      limits: { ...limits, ...(store.claims !== undefined && { running }), ...more },
    });
  }

  start(): Promise<void> {
    return this.#engine.start();
  }

  stop(): Promise<void> {
    return this.#engine.stop();
  }

  create(request: RunCreateRequest, options: RunOptions): Promise<AcceptedRun> {
    return this.#engine.create(request, options);
  }

  resume(run_id: string, input: AwaitResumeInput, options: RunOptions): Promise<AcceptedRun> {
    return this.#engine.resume(run_id, input, options);
  }

  cancel(run_id: string, question?: string): Promise<string> {
    return this.#engine.cancel(run_id, question);
  }

  run(run_id: string): Promise<string> {
    return this.#engine.run(run_id);
  }

  remove(run_id: string): Promise<void> {
    return this.#engine.remove(run_id);
  }

  removeSession(session_id: string): Promise<void> {
    return this.#engine.removeSession(session_id);
  }

  /**
   * Reads a run after an event, until it is settled or final. Returns a function to call when the client disconnects.
   */
  async read(run_id: string, after: number, until: 'settled' | 'final', listener: Listener): Promise<() => void> {
    const cursor = await this.#engine.openCursor(run_id, { after, until });
    const disconnect = this.#engine.connectReader(cursor);
    let open = true;
    const close = (gone: boolean): void => {
      if (!open) return;
      open = false;
      cursor.close();
      disconnect(gone);
    };
    const read = (): void => {
      if (!open) return;
      try {
        for (let batch = cursor.read(); batch !== 'later'; batch = cursor.read()) {
          if (batch === 'end') {
            close(false);
            listener.end();
            return;
          }
          // A cursor without progress would never return `later`.
          if (batch.lines.length === 0) {
            this.#ledger.violate('a cursor gets on', `${run_id} after ${after}: a batch without events`);
            return;
          }
          for (const [index, line] of batch.lines.entries()) listener.line(batch.first + index, line);
        }
      } catch (error) {
        close(true);
        listener.end(error);
      }
    };
    cursor.onReady(read);
    read();
    return () => close(true);
  }
}
