import type { Agent } from 'rivulet';
import type { Answers, Followed } from 'rivulet/testing';
import { firstValueFrom, type Observable } from 'rxjs';
import { newId } from '../../src/engine/ids.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { begin, follow, startEngine } from '../../src/testing/engine.ts';

/**
 * Runs a durable agent until the signal, or a question without one; the run then continues in the next process. Answers are
 * given in the first process where there is a signal.
 */
export async function crash(agent: Agent, signal?: Observable<void>, answers?: Answers): Promise<Followed> {
  const store = new MemoryStore();
  const crashed = signal && firstValueFrom(signal);
  const first = await startEngine([agent], store);
  const run_id = await begin(first, agent, 'Oslo?', newId());
  const followed = signal && answers === undefined ? undefined : follow(first, run_id, signal && answers);
  await (crashed ?? followed);
  await first.stop();
  await followed;
  const second = await startEngine([agent], store);
  return follow(second, run_id, signal ? [] : answers).finally(() => second.stop());
}
