/**
 * Shows which garbage collections discard compiled code whose objects are all gone, the reason for the last column of
 * “10,000 finished runs”: node --expose-gc --allow-natives-syntax bench/collections.js
 */
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';

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

/** V8's bit for a function that runs optimized code. Through `eval`, because the syntax is V8's own. */
// biome-ignore lint/security/noGlobalEval: as above
const isOptimized = () => (eval('%GetOptimizationStatus(begin)') & 0x10) !== 0;

let collections = 0;
new PerformanceObserver((list) => {
  for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1;
}).observe({ entryTypes: ['gc'] });

while (!isOptimized()) {
  for (let number = 0; number < 100_000; number += 1) begin(number);
  await setImmediate();
}

let garbage = [];
for (let told = 0; told < 8; ) {
  for (let n = 0; n < 300; n += 1) garbage.push({ n, list: [n], text: `text ${n}` });
  if (garbage.length > 300_000) garbage = [];
  await setImmediate();
  if (collections > told) {
    told = collections;
    console.log(`after ${told} of V8's own: ${isOptimized() ? 'compiled' : 'discarded'}`);
  }
}
globalThis.gc();
console.log(`after a forced one: ${isOptimized() ? 'compiled' : 'discarded'}`);
