/**
 * Runs an agent in a process without an OpenTelemetry SDK. Prints the CPU time of a short run and of what tracing does in
 * it, in microseconds.
 */
import { of } from 'rxjs';
import type { Traces } from '../../src/core/ports/traces.ts';
import { inSpan, RunTrace } from '../../src/engine/execution/run-trace.ts';
import { createRuntime, defineAgent } from '../../src/index.ts';

const stepping = defineAgent({ name: 'stepping', description: 'Takes a step.' }, (_, { step, trace }) =>
  step('one', () => of(`step ${JSON.stringify(trace())}`)),
);

/** The least CPU time of one of `times` calls, of several rounds: other work of the machine only adds to it. */
async function cpuOf(times: number, work: () => unknown): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round += 1) {
    const before = process.cpuUsage();
    for (let at = 0; at < times; at += 1) await work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / times);
  }
  return least;
}

/** What a process without an SDK has. */
const traces = (): Traces | undefined => undefined;

/** All that an execution, and a step of it, do about traces where there are none. */
function untraced(): void {
  const opened = traces();
  const trace = opened && new RunTrace(opened, stepping.manifest, [], Object.create(null));
  trace?.onStatus('in-progress');
  inSpan(() => nothing, undefined, trace?.span);
  trace?.onStatus('completed');
  trace?.end(undefined);
}

const nothing = of();
await using runtime = await createRuntime({ agents: [stepping] });
const loop = 100_000;
const spent = await cpuOf(20, () => {
  for (let at = 0; at < loop; at += 1) untraced();
});
console.log(
  JSON.stringify({
    run: await cpuOf(500, () => runtime.sync('stepping', 'hi')),
    traces: spent / loop,
  }),
);
