import { type AgentOutput, defineAgent, textOf } from 'rivulet';
import { concatMap, type Observable, of, reduce } from 'rxjs';

const stages = ['reverse', 'upper'];

/**
 * A chain: the output of one agent is the input of the next.
 *
 * A stage starts when the one before it is complete; the last one streams to the client. All stages belong to one run, so
 * cancelling the run cancels the current stage.
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
      (previous, stage) =>
        previous.pipe(
          reduce((text, output) => text + textOf(output), ''),
          concatMap((text) => context.call(stage, text)),
        ),
      of(textOf(input)),
    ),
);
