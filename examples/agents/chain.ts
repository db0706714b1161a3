import { type AgentOutput, defineAgent, textOf } from 'rivulet';
import { concatMap, type Observable, of, reduce } from 'rxjs';

const stages = ['reverse', 'upper'];

/**
 * A chain: what one agent says is what the next one hears.
 *
 * A stage begins when the one before it has finished its text; the last one streams straight to the
 * reader. All of it is one run, so that cancelling it cancels whichever stage is at work.
 */
export default defineAgent(
  {
    name: 'chain',
    description: `Passes the text through ${stages.join(', then ')}.`,
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example', 'composition'],
      dependencies: stages.map((name) => ({ type: 'agent', name })),
    },
  },
  (input, context) =>
    stages.reduce<Observable<AgentOutput>>(
      (said, stage) =>
        said.pipe(
          reduce((text, output) => text + textOf(output), ''),
          concatMap((text) => context.call(stage, text)),
        ),
      of(textOf(input)),
    ),
);
