import { writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { createContext, runInContext } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import { readable } from '../terminal/log.ts';
import { heldLine, type Interrupted, LoopState, turnInterval, type WatchdogData } from './watchdog.ts';

// The thread of `startWatchdog`. It counts the intervals in which the event loop does not turn. It does not read a clock: a
// laptop that sleeps, or a process that is stopped, stops this thread as well, and that counts as one interval.

const data: WatchdogData = workerData;
const state = new LoopState(data.memory);
const [firstReport, nextReport] = [5_000 / turnInterval, 60_000 / turnInterval];

function warn(fields: object): void {
  if (data.lines === 'none') return;
  const line = JSON.stringify({ level: 40, time: Date.now(), pid: process.pid, hostname: hostname(), ...fields });
  try {
    // Not `process.stderr`, which the held event loop would have to write.
    writeSync(2, `${data.lines === 'readable' ? readable(line) : line}\n`);
  } catch {
    // Stderr is closed, or its reader is late.
  }
}

/** Returns when the event loop turns. `held`: the intervals for which it has been held. */
function reportUntilTurned(turns: number, held: { intervals: number }): void {
  for (; !state.waitForTurn(turns, turnInterval); held.intervals += 1) {
    if (held.intervals === firstReport || held.intervals % nextReport === 0)
      warn(heldLine((held.intervals * turnInterval) / 1_000, state.entered));
  }
}

/** As `reportUntilTurned`. Returns false where Ctrl-C came first: a signal ends such a script, whatever thread it runs in. */
function untilTurnedOrInterrupted(turns: number, held: { intervals: number }): boolean {
  try {
    runInContext('wait()', createContext({ wait: () => reportUntilTurned(turns, held) }), { breakOnSigint: true });
    return true;
  } catch (error) {
    // An Error of the other context.
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
    if (code !== 'ERR_SCRIPT_EXECUTION_INTERRUPTED') throw error;
    return false;
  }
}

for (;;) {
  const { turns } = state;
  let intervals = 0;
  while (intervals < firstReport && !state.waitForTurn(turns, turnInterval)) intervals += 1;
  if (intervals < firstReport) continue;
  const held = { intervals };
  state.setSigint('ofThread');
  const interrupted = !untilTurnedOrInterrupted(turns, held);
  if (interrupted) {
    warn({ msg: 'the server stops when the event loop turns; Ctrl-C again ends the process at once' });
    // From here on, SIGINT has its default effect.
    if (!untilTurnedOrInterrupted(turns, held)) process.kill(process.pid, 'SIGINT');
  }
  state.setSigint('ofNobody');
  state.waitForHandler();
  if (interrupted) parentPort?.postMessage('interrupted' satisfies Interrupted);
  const seconds = Math.round((held.intervals * turnInterval) / 1_000);
  warn({ seconds, msg: `the event loop turns again, after it was held for ${seconds} s` });
}
