import { textOf } from '../../src/core/parts.ts';
import type { Run } from '../../src/schema/run.ts';
import { cutAll } from '../../src/testing/cut-everywhere.ts';
import { Effects } from '../../src/testing/effects.ts';
import { agentsOf, planOf, randomOf } from './plans.ts';

/** What a Run says, without the order of branches that ran beside each other, which no life promises. */
const pieces = ({ output }: Run): string[] => output.map(textOf).join('').split(';').sort();

/** Performs one random plan, cuts it off after every commit, and returns the problems of all executions. */
export async function checkPlan(seed: number): Promise<{ cuts: number; faults: string[] }> {
  const plan = planOf(randomOf(seed));
  const effects = new Effects();
  const [agent, ...others] = agentsOf(plan, effects);
  if (agent === undefined) throw new Error('a plan has an agent');
  const { cuts, faults } = await cutAll(agent, 'go', {
    answers: ({ message }) => `re ${textOf(message)}`,
    calls: Object.fromEntries(others.map((other) => [other.manifest.name, other])),
    endOf: pieces,
    effects,
  });
  return { cuts, faults: faults.map((fault) => `seed ${seed}, ${fault}; ${JSON.stringify(plan)}`) };
}
