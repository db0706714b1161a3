import { type Context, createContext, runInContext } from 'node:vm';

/** What became of work in limited time. `starved`: the process did not get the processor for long enough to tell. */
export type Limited<T> = { readonly state: 'done'; readonly value: T } | { readonly state: 'too-long' | 'starved' };

/** How many times the limit the longest try may take: a process needs about a sixteenth of a core. */
const longestTry = 16;

/**
 * Runs work for at most `limit` milliseconds of processor time, and stops even a RegExp then. Work that is stopped is run
 * again if other load kept the process from the processor. So work must have no effect until it is done. Each try may take
 * twice as long as the last one. All tries together block the event loop for 31 times the limit at most.
 */
export function inProcessorTime<T>(limit: number, work: () => T): Limited<T> {
  for (let timeout = limit; timeout <= longestTry * limit; timeout *= 2) {
    const before = process.cpuUsage();
    const done = runWithVmTimeout(work, timeout);
    if (done !== undefined) return done;
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1_000 > 0.8 * limit) return { state: 'too-long' };
  }
  return { state: 'starved' };
}

let context: Context | undefined;

/** Runs work for at most `timeout` milliseconds; undefined after that. */
function runWithVmTimeout<T>(work: () => T, timeout: number): Limited<T> | undefined {
  let done: Limited<T> | undefined;
  context ??= createContext({});
  context.work = () => {
    done = { state: 'done', value: work() };
  };
  try {
    runInContext('work()', context, { timeout });
  } catch (error) {
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
    if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
  } finally {
    // It refers to the value, which may be large.
    context.work = undefined;
  }
  return done;
}
