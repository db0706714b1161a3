import { runInThisContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { watchAgents } from '../engine/agent-watch.ts';
import { LoopState } from './held-loop.ts';

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
