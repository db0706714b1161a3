/**
 * Shows which garbage collections discard compiled code whose objects are all gone, the reason for the last column of
 * “10,000 finished runs”: those that V8 makes while a process works keep it, and those that it makes to return memory, once
 * the process has been idle, discard it, as a forced one does. Takes up to two minutes:
 * node --expose-gc --allow-natives-syntax bench/collections.js
 */
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate, setTimeout } from 'node:timers/promises';

class Run {
  constructor(number) {
    this.number = number;
  }
}

function begin(number) {
  const run = new Run(number);
  run.next = run.number + 1;
  return run;
}

/** Through `eval`, because the syntax is V8's own. */
// biome-ignore lint/security/noGlobalEval: as above
const askV8 = (question) => eval(question);
/** V8's bit for a function that runs optimized code. */
const isOptimized = () => (askV8('%GetOptimizationStatus(begin)') & 0x10) !== 0;

let collections = 0;
new PerformanceObserver((list) => {
  for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1;
}).observe({ entryTypes: ['gc'] });

async function compile() {
  while (!isOptimized()) {
    for (let number = 0; number < 100_000; number += 1) begin(number);
    await setImmediate();
  }
}

// Else its loop would be compiled together with the function, which is then not called any more.
askV8('%NeverOptimizeFunction(compile)');

let objects = [];
/** Allocates until V8 has collected the old objects of the heap once more. Keeps at most `most` objects. */
async function work(most) {
  for (const before = collections; collections === before; await setImmediate()) {
    if (objects.length >= most) objects = [];
    for (let n = 0; n < 300; n += 1) objects.push({ n, list: [n], text: `text ${n}` });
  }
}

const tell = (when) => console.log(`${when}: ${isOptimized() ? 'compiled' : 'discarded'}`);

await compile();
for (let count = 1; count <= 8; count += 1) {
  await work(300_000);
  tell(`at work, after collection ${count}`);
}
// V8 returns memory only where the heap has grown since it last did.
await work(Number.POSITIVE_INFINITY);
tell('at work, with a larger heap');
const before = collections;
for (let seconds = 0; seconds < 120 && collections === before; seconds += 1) await setTimeout(1_000);
tell(collections === before ? 'idle for two minutes, not collected' : 'idle, after a collection that returns memory');
await compile();
globalThis.gc();
tell('at work, after a forced collection');
