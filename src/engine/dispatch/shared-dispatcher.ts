import { randomUUID } from 'node:crypto';
import type { RunClaims } from '../../core/ports/run-claims.ts';
import { within } from '../../core/timing.ts';
import { PeriodicTask } from '../time/periodic.ts';
import type { Dispatcher, Execute, Place } from './dispatcher.ts';

/** Runs that are claimed at once: few, so that the nodes share what waits. */
const claimPage = 50;
/** Runs of any other request to the store. */
const page = 1_000;
/** Renewals in the time of a lease. */
const renewals = 6;
/** Renewals for which a node claims nothing after its lease has ended, so that other living nodes renew their leases first. */
const cautious = 2;
/** Renewals after which this process looks at what it has in the store, also without a reason to doubt it. */
const recheckAfter = 60;

export interface SharedDispatcherOptions {
  /** Runs that this process executes at once; those that rest do not count. */
  readonly slots: number;
  /** Milliseconds for which a node keeps its runs without a renewal. */
  readonly lease: number;
  /** Milliseconds in which the store has to answer. */
  readonly requestTimeout: number;
  /** The names of the agents that are here. */
  readonly agents: () => readonly string[];
  /** Receives errors of the store. */
  readonly onError: (error: unknown) => void;
}

/**
 * The dispatcher of a store that several nodes share. A run that is created here is executed here where a slot is free. Other
 * runs are claimed from the store when a slot is free: runs that no node could take, and runs of nodes that have died.
 */
export class SharedDispatcher implements Dispatcher {
  readonly shared = true;
  readonly node = randomUUID();
  readonly #claims: RunClaims;
  readonly #options: SharedDispatcherOptions;
  readonly #tasks: readonly PeriodicTask[];
  #execute: Execute | undefined;
  #withoutSlot = (): number => 0;
  #paused = false;
  /** The lease has ended by then at the earliest, by this process's steady clock. */
  #leasedUntil = 0;
  /** See `Dispatcher.leasedSince`. */
  #leasedSince = 0;
  #renewed = 0;
  #renewalWaiters: (() => void)[] = [];
  /** The number of the renewal from which on this process claims runs. */
  #claimsFrom = 0;
  /** The runs that this process executes. */
  readonly #held = new Map<string, Promise<void>>();
  /** Slots that are kept for runs to come. */
  #kept = 0;
  /** Runs to be taken by their ids. One that is held is taken again when it has left. */
  readonly #offered = new Set<string>();
  /** Runs that have left this process. They are given back with the next renewal: this node would claim them at once. */
  readonly #left = new Set<string>();
  /** Whether runs may wait in the store that this process has not looked for. */
  #claimWanted = false;
  /** Whether more runs may wait in the store than this process had slots for. */
  #backlog = false;
  /** Whether the store may have given runs to this process in an answer that was lost. */
  #inDoubt = false;
  #looking: Promise<void> | undefined;

  constructor(claims: RunClaims, options: SharedDispatcherOptions) {
    this.#claims = claims;
    this.#options = options;
    // Apart from each other: a renewal must not wait for the rest.
    this.#tasks = [() => this.#renew(), () => this.#tidy()].map(
      (work) => new PeriodicTask(options.lease / renewals, work, options.onError),
    );
  }

  async start(execute: Execute, withoutSlot: () => number): Promise<void> {
    this.#execute = execute;
    this.#withoutSlot = withoutSlot;
    for (const task of this.#tasks) task.start();
    await this.#renew().catch(this.#options.onError);
  }

  reserve(): Place | undefined {
    if (!this.#takes || this.#backlog || this.#room === 0) return undefined;
    this.#kept += 1;
    let isKept = true;
    const release = (): void => {
      if (isKept) this.#kept -= 1;
      isKept = false;
    };
    const begin = (run_id: string): void => {
      release();
      this.#begin(run_id);
    };
    const drop = (): void => {
      release();
      // The store may have the run all the same.
      this.#inDoubt = true;
      this.onSlotFree();
    };
    return { begin, drop };
  }

  offer(run_ids: readonly string[]): void {
    for (const run_id of run_ids) this.#offered.add(run_id);
    this.#look();
  }

  onWaiting(): void {
    this.#claimWanted = true;
    this.#look();
  }

  onSlotFree(): void {
    if (this.#backlog) this.onWaiting();
  }

  async pause(): Promise<void> {
    this.#paused = true;
    await this.#looking;
    await this.#freeLeft().catch(this.#options.onError);
  }

  async close(): Promise<void> {
    this.#paused = true;
    await Promise.all(this.#held.values());
    await Promise.all(this.#tasks.map((task) => task.stop()));
    await this.#freeLeft().catch(this.#options.onError);
    if (this.#execute === undefined) return;
    await this.#ask((claims) => claims.endLease(this.node)).catch(this.#options.onError);
  }

  leasedSince(run_id: string): number | undefined {
    if (!this.#isLeased) return undefined;
    return this.#claims.leasedSince === undefined ? this.#leasedSince : this.#claims.leasedSince(this.node, run_id);
  }

  whenRenewed(): Promise<void> {
    return new Promise((resolve) => this.#renewalWaiters.push(resolve));
  }

  /** Whether the lease on a run began before a time of `performance.now`, and has not ended since. */
  #isLeasedSince(time: number, run_id: string): boolean {
    const since = this.leasedSince(run_id);
    return since !== undefined && since <= time;
  }

  get #isLeased(): boolean {
    return performance.now() < this.#leasedUntil;
  }

  /** Whether this process takes runs. One whose lease may have ended does not: others would claim them at once. */
  get #takes(): boolean {
    return this.#execute !== undefined && !this.#paused && this.#isLeased;
  }

  get #room(): number {
    return Math.max(0, this.#options.slots - this.#kept - this.#held.size + this.#withoutSlot());
  }

  async #renew(): Promise<void> {
    const { lease, requestTimeout } = this.#options;
    const now = performance.now();
    // A part of the lease, so that the next one comes in time.
    const inTime = Math.min(requestTimeout, lease / 2);
    const answersAgain = await this.#ask((claims) => claims.renewLease(this.node, lease), inTime);
    if (answersAgain) this.#inDoubt = true;
    const hadEnded = !this.#isLeased;
    this.#renewed += 1;
    if (hadEnded) {
      if (this.#renewed > 1) this.#claimsFrom = this.#renewed + cautious;
      this.#leasedSince = performance.now();
    }
    this.#leasedUntil = now + lease;
    for (const resolve of this.#renewalWaiters.splice(0)) resolve();
    this.onWaiting();
  }

  async #tidy(): Promise<void> {
    await this.#freeLeft();
    if ((this.#inDoubt || this.#renewed % recheckAfter === 0) && this.#takes) await this.#offerLost();
    this.#look();
  }

  /** Offers the runs that this process has in the store, and not in memory. */
  async #offerLost(): Promise<void> {
    this.#inDoubt = false;
    for (let after = ''; this.#takes; ) {
      const held = await this.#ask((claims) => claims.heldRuns(this.node, after, page));
      this.offer(held.filter((run_id) => this.#isFree(run_id)));
      after = held.at(-1) ?? '';
      if (held.length < page) return;
    }
  }

  async #ask<T>(call: (claims: RunClaims) => Promise<T>, inTime = this.#options.requestTimeout): Promise<T> {
    try {
      return await within(inTime, call(this.#claims));
    } catch (error) {
      this.#inDoubt = true;
      throw error;
    }
  }

  /** Whether a run may be taken. One that is held, or about to be given back, waits for the end of that. */
  #isFree(run_id: string): boolean {
    return !this.#held.has(run_id) && !this.#left.has(run_id);
  }

  /** Takes and claims runs, in one request at a time, until nothing is asked for any more. */
  #look(): void {
    if (this.#looking === undefined && this.#nextRequest() !== undefined) this.#looking = this.#lookForAll();
  }

  async #lookForAll(): Promise<void> {
    try {
      for (let next = this.#nextRequest(); next !== undefined; next = this.#nextRequest()) await next();
    } catch (error) {
      this.#options.onError(error);
    } finally {
      this.#looking = undefined;
    }
  }

  #nextRequest(): (() => Promise<void>) | undefined {
    if (!this.#takes) return undefined;
    const offered = [...this.#offered].filter((run_id) => this.#isFree(run_id)).slice(0, page);
    if (offered.length > 0) return () => this.#takeOffered(offered);
    return this.#claimWanted && this.#renewed >= this.#claimsFrom ? () => this.#claim() : undefined;
  }

  async #takeOffered(offered: readonly string[]): Promise<void> {
    const some = offered.slice(0, this.#room);
    for (const run_id of offered) this.#offered.delete(run_id);
    // Other nodes take them. The store may still have them under this node, from before it failed.
    for (const run_id of offered.slice(some.length)) this.#left.add(run_id);
    if (some.length < offered.length) this.#backlog = true;
    await this.#beginSome(some.length, (claims) => claims.takeRuns(this.node, some));
  }

  async #claim(): Promise<void> {
    this.#claimWanted = false;
    const limit = Math.min(this.#room, claimPage);
    const agents = this.#options.agents();
    this.#backlog = (await this.#beginSome(limit, (claims) => claims.claimRuns(this.node, agents, limit))) === limit;
    this.#claimWanted ||= this.#backlog && this.#room > 0;
  }

  /** Begins the runs that a request gives, for which it keeps slots meanwhile. Resolves to their number. */
  async #beginSome(most: number, request: (claims: RunClaims) => Promise<string[]>): Promise<number> {
    if (most === 0) return 0;
    this.#kept += most;
    const asked = performance.now();
    try {
      const run_ids = await this.#ask(request);
      // A process that was told to stop meanwhile gives the runs back. So does one whose lease has ended meanwhile: another node
      // may have them.
      for (const run_id of run_ids)
        if (this.#paused || !this.#isLeasedSince(asked, run_id)) this.#left.add(run_id);
        else this.#begin(run_id);
      return run_ids.length;
    } finally {
      this.#kept -= most;
    }
  }

  async #freeLeft(): Promise<void> {
    while (this.#left.size > 0) {
      const run_ids = [...this.#left].slice(0, page);
      await this.#ask((claims) => claims.freeRuns(this.node, run_ids));
      for (const run_id of run_ids) this.#left.delete(run_id);
    }
  }

  #begin(run_id: string): void {
    this.#left.delete(run_id);
    if (this.#held.has(run_id)) this.#offered.add(run_id);
    else this.#held.set(run_id, this.#hold(run_id));
  }

  /** Never rejects. */
  async #hold(run_id: string): Promise<void> {
    const how = await this.#execute?.(run_id);
    if (how === 'owned') this.#left.add(run_id);
    this.#held.delete(run_id);
    this.#look();
    this.onSlotFree();
  }
}
