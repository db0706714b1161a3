import { map, merge, NEVER, type Observable, of } from 'rxjs';
import { expect, it } from 'vitest';
import { type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { begin, runOf, toTheEnd } from '../support/lives.ts';
import { textOf } from '../support/run-output.ts';

const reply = { type: 'message' as const, message: { parts: [{ content: 'yes ' }] } };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const agentOf = (run: AgentFunction) =>
  defineAgent({ name: 'asks', description: 'Asks while it works.' }, run, { durable: true });
/** Asks while a step works. */
const asksWhile =
  (work: () => Observable<string>): AgentFunction =>
  (_, context) =>
    merge(context.await('Go on?').pipe(map(({ message }) => textOfMessage(message))), context.step('work', work));

it('keeps a reply that waits for a replay when its process stops', async () => {
  const store = new MemoryStore();
  const first = await startEngine([agentOf(asksWhile(() => NEVER))], store);
  const run_id = await begin(first, 'asks');
  while ((await runOf(first, run_id)).status !== 'awaiting') await turn();
  await first.stop();

  // Its second life never comes to the question again.
  const second = await startEngine([agentOf(() => NEVER)], store);
  const resumed = second.resume(run_id, reply);
  // It waits for the replay.
  for (let turns = 0; turns < 10; turns += 1) await turn();
  await second.stop();
  expect(JSON.parse((await resumed).run).status).toBe('in-progress');

  const third = await startEngine([agentOf(asksWhile(() => of('worked ')))], store);
  const { run } = await toTheEnd(third, run_id);
  expect(run.status).toBe('completed');
  expect(textOf(run)).toContain('yes ');
  await third.stop();
});
