import { isDeepStrictEqual } from 'node:util';
import { fold } from '../../src/core/run-state.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Run } from '../../src/schema/run.ts';
import { again, whole } from './lives.ts';
import { agentsOf, planOf, randomOf } from './plans.ts';

const answer = (question: string): string => `re ${question}`;

/** What a Run says, without the order of branches that ran beside each other, which no life promises. */
const pieces = ({ output }: Run): string[] =>
  output
    .flatMap(({ parts }) => parts.map(({ content }) => content ?? ''))
    .join('')
    .split(';')
    .sort();

const folded = (events: readonly Event[]): Run | undefined =>
  structuredClone(events).reduce<Run | undefined>(
    (run, event) => (run === undefined ? ('run' in event ? event.run : undefined) : fold(run, event)),
    undefined,
  );

/** Carries out one random plan, cuts it off after every commit, and answers what is wrong with any of its lives. */
export async function checkPlan(seed: number): Promise<{ cuts: number; faults: string[] }> {
  const plan = planOf(randomOf(seed));
  const agents = agentsOf(plan);
  const first = await whole(agents, answer);
  const faults: string[] = [];
  const fault = (cut: number, what: string): void => {
    faults.push(`seed ${seed}, cut ${cut}: ${what}; ${JSON.stringify(plan)}`);
  };
  const cuts = first.store.commits.length;
  for (let cut = 1; cut < cuts; cut += 1) {
    const life = await again(agents, first.store, cut, answer);
    if (life === undefined) continue;
    const { run, events, kept } = life;
    if (run.status !== first.run.status || !isDeepStrictEqual(run.error, first.run.error))
      fault(cut, `${run.status} ${JSON.stringify(run.error)}, not ${first.run.status}`);
    else if (!isDeepStrictEqual(pieces(run), pieces(first.run)))
      fault(cut, `said ${pieces(run)}, not ${pieces(first.run)}`);
    if (!isDeepStrictEqual(events.slice(0, kept), first.events.slice(0, kept)))
      fault(cut, 'events were lost or changed');
    if (!isDeepStrictEqual(folded(events), run)) fault(cut, 'the log does not fold into the Run');
  }
  return { cuts, faults };
}
