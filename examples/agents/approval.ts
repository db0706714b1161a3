import { type AgentContext, defineAgent, textOf } from 'rivulet';
import { concatMap, from, map, type Observable, of } from 'rxjs';

const stepsOf = (text: string): string[] =>
  text
    .split(/\n|,|\bthen\b/)
    .map((step) => step.replace(/^\s*\d+\.|\s+$/g, '').trim())
    .filter((step) => step !== '');

const listed = (steps: readonly string[]): string => steps.map((step, index) => `${index + 1}. ${step}`).join('\n');

/** Asks until a person approves the plan; a changed plan is asked for again. Emits the approved plan. */
function agree(plan: string[], context: AgentContext): Observable<string[]> {
  const question = `${listed(plan)}\n\nReply "approve", "stop", or with the plan as it should be, one step a line.`;
  return context.await(question).pipe(
    map(({ message }) => textOf(message).trim()),
    concatMap((reply) => {
      if (/^approve\b/i.test(reply)) return of(plan);
      if (/^stop\b/i.test(reply)) return of([]);
      const changed = stepsOf(reply);
      return agree(changed.length === 0 ? plan : changed, context);
    }),
  );
}

/**
 * Human approval: the agent makes a plan, and does nothing before a person approves it. Meanwhile the run is `awaiting`,
 * which costs no CPU time; the reply may take a second or a day.
 */
export default defineAgent(
  {
    name: 'approval',
    description: 'Makes a plan that a human approves, changes or stops.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'human-in-the-loop'] },
  },
  (input, context) =>
    agree(stepsOf(textOf(input)), context).pipe(
      concatMap((plan) => (plan.length === 0 ? of('Nothing was done.') : from(plan.map((step) => `Done: ${step}\n`)))),
    ),
);
