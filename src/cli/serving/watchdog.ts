import { runInThisContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { watchAgents } from '../../engine/agents/agent-watch.ts';

/** What the thread is started with, and what it says of a Ctrl-C that came while the event loop was held. */
export interface WatchdogData {
  readonly memory: SharedArrayBuffer;
  readonly lines: WatchdogLines;
}
/** How the thread writes its lines: for people, as JSON, or not at all. */
export type WatchdogLines = 'readable' | 'json' | 'none';

export type Interrupted = 'interrupted';

/** Milliseconds between two signs that the event loop turns. */
export const turnInterval = 500;

/**
 * Starts a thread that reports an event loop which is held for 5 s, with the agent that holds it, and lets Ctrl-C end the
 * process meanwhile. Neither the thread nor its timer keeps the process alive. Where no thread can start, nothing is reported.
 */
export function startWatchdog(lines: WatchdogLines): void {
  const state = new LoopState();
  try {
    const workerData: WatchdogData = { memory: state.memory, lines };
    const url = new URL('./watchdog-thread.js', import.meta.url);
    const thread = new Worker(url, { workerData, execArgv: [], name: 'watchdog' });
    thread.on('error', () => {});
    thread.on('message', (_: Interrupted) => process.emit('SIGINT'));
    // Has to follow the listener for messages, which refs the thread.
    thread.unref();
  } catch {
    return;
  }
  watchAgents(state);
  setInterval(() => {
    if (!state.turn()) return;
    attachSigint();
    state.setSigint('ofProcess');
  }, turnInterval).unref();
}

/** The thread has replaced this process's handler of SIGINT. Node attaches it anew after such a script. */
function attachSigint(): void {
  try {
    runInThisContext('0', { breakOnSigint: true });
  } catch {
    // Ctrl-C came during the script, which it has ended.
    process.emit('SIGINT');
  }
}

/** What the event loop and the thread that watches it share. */
export class LoopState {
  /** Turns of the event loop that were counted, whether an agent is called, bytes of the agent's name, and the owner of SIGINT. */
  readonly #numbers: Int32Array;
  readonly #name: Uint8Array;
  readonly memory: SharedArrayBuffer;

  constructor(memory = new SharedArrayBuffer(numbersSize + nameSize)) {
    this.memory = memory;
    this.#numbers = new Int32Array(memory, 0, numbersSize / 4);
    this.#name = new Uint8Array(memory, numbersSize);
  }

  get turns(): number {
    return Atomics.load(this.#numbers, 0);
  }

  /** Called by the event loop again and again. Returns whether the thread has given SIGINT back, which it takes while the loop is held. */
  turn(): boolean {
    Atomics.add(this.#numbers, 0, 1);
    Atomics.notify(this.#numbers, 0);
    // Until a handler is attached, SIGINT ends the process, so the loop waits here for the thread.
    Atomics.wait(this.#numbers, 3, sigint.ofThread, maxHandOver);
    return Atomics.load(this.#numbers, 3) === sigint.ofNobody;
  }

  setSigint(owner: keyof typeof sigint): void {
    Atomics.store(this.#numbers, 3, sigint[owner]);
    Atomics.notify(this.#numbers, 3);
  }

  /** Blocks the thread, which has given SIGINT back, until the process has it. */
  waitForHandler(): void {
    Atomics.wait(this.#numbers, 3, sigint.ofNobody);
  }

  /** Blocks this thread until the event loop has turned since `turns`, for so many milliseconds at most. Returns whether it has. */
  waitForTurn(turns: number, milliseconds: number): boolean {
    return Atomics.wait(this.#numbers, 0, turns, milliseconds) !== 'timed-out';
  }

  enter(agent_name: string, run_id: string): void {
    const { written } = encoder.encodeInto(`${run_id} ${agent_name}`, this.#name);
    this.#numbers[2] = written;
    this.#numbers[1] = 1;
  }

  leave(): void {
    this.#numbers[1] = 0;
  }

  /** The agent that was called last, and whether the call goes on. Undefined before the first call. */
  get entered(): Entered | undefined {
    const [, inside, length = 0] = this.#numbers;
    if (length === 0) return undefined;
    const [run_id = '', agent = ''] = decoder.decode(this.#name.slice(0, length)).split(' ');
    return { agent, run_id, inside: inside === 1 };
  }
}

export interface Entered {
  readonly agent: string;
  readonly run_id: string;
  readonly inside: boolean;
}

/** A name that is longer is cut off. */
const [numbersSize, nameSize] = [16, 512];
/** The handler of SIGINT. */
const sigint = { ofProcess: 0, ofThread: 1, ofNobody: 2 };
/** Milliseconds that the thread may need to give SIGINT back. */
const maxHandOver = 1_000;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The line of the log for an event loop that has been held for so many seconds. */
export function heldLine(seconds: number, entered: Entered | undefined): object {
  const { agent, run_id, inside } = entered ?? {};
  const held = `held the event loop for ${seconds} s`;
  const by = `agent ${agent}, run ${run_id}`;
  const what =
    entered === undefined
      ? `something other than an agent has ${held}`
      : inside
        ? `${by}, has ${held}`
        : `something has ${held}; the last agent that was called is ${by}`;
  const msg = `${what}. Nothing else goes on meanwhile. Ctrl-C twice ends the process, as kill -9 ${process.pid} does`;
  return { seconds, ...(entered !== undefined && { agent, run_id }), msg };
}
