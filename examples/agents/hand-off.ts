import { defineAgent, textOf } from 'rivulet';
import { concat, concatMap, defer, ignoreElements, of } from 'rxjs';

/**
 * A hand-off: the first message of a session gets a greeting, and its answer from a specialist. Later messages go directly
 * to that specialist, still under this agent's name.
 *
 * The session's state names the specialist. All agents of a session share one state, so a specialist that needs state has
 * to use a key of its own in it.
 */
export default defineAgent(
  {
    name: 'hand-off',
    description: 'Welcomes a conversation and hands it to a specialist.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example', 'composition', 'stateful'],
      dependencies: ['count-words', 'upper'].map((name) => ({ type: 'agent', name })),
    },
  },
  (input, context) =>
    defer(() => context.session.state<{ specialist: string }>()).pipe(
      concatMap((state) => {
        if (state !== undefined) return context.call(state.specialist, input);
        const specialist = /\b(count|how many)\b/i.test(textOf(input)) ? 'count-words' : 'upper';
        return concat(
          of(`Welcome! From here on ${specialist} answers you.\n`),
          // Set before the specialist starts, so that the hand-off stays if the specialist fails.
          defer(() => context.session.setState({ specialist })).pipe(ignoreElements()),
          context.call(specialist, input),
        );
      }),
    ),
);
