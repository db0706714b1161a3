import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import type { Clock } from './clock.ts';
import type { Random } from './random.ts';

const globals = { Date, setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate };
const real = {
  ...globals,
  random: Math.random,
  randomUUID: crypto.randomUUID,
  delay: timersPromises.setTimeout,
  nextTurn: timersPromises.setImmediate,
};

/** Milliseconds that `setImmediate` takes: less than any response. */
const turn = 0.01;
const day = 86_400_000;
/**
 * The start time of the next simulation. Ids contain times, and must not be older than those of earlier simulations.
 */
let calendar = real.Date.UTC(2030, 0, 1);

/** A timer of a node, as Node's own are. */
class SimTimer {
  readonly #start: () => () => void;
  #stop: () => void;

  constructor(start: () => () => void) {
    this.#start = start;
    this.#stop = start();
  }

  clear(): void {
    this.#stop();
  }

  refresh(): this {
    this.#stop();
    this.#stop = this.#start();
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  close(): this {
    this.#stop();
    return this;
  }

  [Symbol.dispose](): void {
    this.#stop();
  }
}

const clearWith =
  (clear: (timer: never) => void) =>
  (timer: unknown): void => {
    if (timer instanceof SimTimer) timer.clear();
    else clear(timer as never);
  };

/** Replaces the process's time and random numbers. Returns a function that restores them. */
export function install(clock: Clock, random: Random): () => void {
  const epoch = calendar;
  const now = (): number => epoch + Math.floor(clock.now);
  class SimDate extends real.Date {
    constructor(...args: unknown[]) {
      // A cast: Date's overloads cannot be spread.
      super(...((args.length === 0 ? [now()] : args) as [number]));
    }

    static override now(): number {
      return now();
    }
  }
  const after = (delay: unknown, work: () => void): SimTimer =>
    new SimTimer(() => clock.at(clock.owner, Math.max(1, Number(delay) || 1), work));
  Object.assign(globalThis, {
    Date: SimDate,
    setTimeout: (work: (...args: unknown[]) => void, delay?: number, ...args: unknown[]) =>
      after(delay, () => work(...args)),
    setInterval: (work: (...args: unknown[]) => void, delay?: number, ...args: unknown[]) => {
      const timer: SimTimer = after(delay, () => {
        timer.refresh();
        work(...args);
      });
      return timer;
    },
    setImmediate: (work: (...args: unknown[]) => void, ...args: unknown[]) =>
      new SimTimer(() => clock.at(clock.owner, turn, () => work(...args))),
    clearTimeout: clearWith(real.clearTimeout),
    clearInterval: clearWith(real.clearInterval),
    clearImmediate: clearWith(real.clearImmediate),
  });
  Object.defineProperty(performance, 'now', { configurable: true, value: () => clock.now });
  Math.random = () => random.next();
  crypto.randomUUID = () => random.uuid();
  Object.assign(timersPromises, {
    setTimeout: <T>(delay: number, value?: T) => clock.sleep(clock.owner, Math.max(1, delay)).then(() => value),
    setImmediate: <T>(value?: T) => clock.sleep(clock.owner, turn).then(() => value),
  });
  syncBuiltinESMExports();

  return () => {
    Object.assign(globalThis, globals);
    Reflect.deleteProperty(performance, 'now');
    Math.random = real.random;
    crypto.randomUUID = real.randomUUID;
    Object.assign(timersPromises, { setTimeout: real.delay, setImmediate: real.nextTurn });
    syncBuiltinESMExports();
    calendar = (Math.ceil((epoch + clock.now) / day) + 1) * day;
  };
}
