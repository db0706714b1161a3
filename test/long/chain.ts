/**
 * Three servers that call each other, over ACP, A2A and MCP, of which one is killed at random in each round:
 * `tsx test/long/chain.ts [rounds] [seed]`, after a build. Prints the faults; exits with 1 if there are faults.
 */
import { setTimeout } from 'node:timers/promises';
import { textOf } from 'rivulet';
import { Chain, outcomesIn } from '../support/chain.ts';
import { Dice } from '../support/dice.ts';

const [rounds = 50, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const calls = 6;

print(`chain: ${rounds} rounds with seed ${seed}`);
const dice = new Dice(seed);
const chain = await Chain.start();
const counts = { written: 0, unknown: 0 };
const faults: string[] = [];
for (let round = 1; round <= rounds; round += 1) {
  const label = `round-${round}`;
  // So that some rounds kill a server in the middle of a call.
  chain.hold(label, 3);
  const { run_id } = await chain.client(1).start('caller', `${label} ${calls}`);
  const seen: unknown[] = [];
  const followed = (async () => {
    for await (const event of chain.client(1).watch(run_id, { onFailed: 'end' })) seen.push(event);
  })();
  const at = dice.of(1, 2, 3);
  await setTimeout(dice.below(400));
  await chain.kill(at);
  await chain.up(at);
  chain.release(label, 3);
  await followed;
  const run = await chain.client(1).get(run_id);
  const fault = (what: string): void => void faults.push(`round ${round}, server ${at} killed: ${what}`);
  const outcomes = outcomesIn(textOf(run.output));
  const made = chain.calls(label);
  const again: unknown[] = [];
  for await (const event of chain.client(1).watch(run_id, { onFailed: 'end' })) again.push(event);
  if (run.status !== 'completed') fault(`${run.status}: ${JSON.stringify(run.error)}`);
  if (outcomes?.length !== calls) fault(`said ${textOf(run.output)}`);
  if (new Set(made).size < made.length) fault(`calls ${made.join(' ')}`);
  if (JSON.stringify(seen) !== JSON.stringify(again)) fault('the client has other events than the log');
  for (const [index, outcome] of (outcomes ?? []).entries()) {
    counts[outcome] += 1;
    if (outcome === 'written' && !made.includes(index + 1)) fault(`call ${index + 1} was not made`);
  }
}
await chain.stop();
print(`${counts.written} calls were made once; of ${counts.unknown} the outcome is unknown.`);
for (const fault of faults) print(fault);
if (faults.length > 0) process.exitCode = 1;
