import { defineAgent, textOf } from 'rivulet';
import { concat, concatMap, defer, ignoreElements, of } from 'rxjs';

/**
 * A hand-off: the first message of a session gets a greeting here and its answer from a specialist;
 * every later one goes to that specialist at once, for the client still under this agent's name.
 *
 * The session's state names the agent that has the conversation. A session has one state, which all agents in it
 * share: a specialist that keeps state as well needs a key of its own in it.
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
          // Kept before the specialist speaks: should it fail, the conversation is its all the same.
          defer(() => context.session.setState({ specialist })).pipe(ignoreElements()),
          context.call(specialist, input),
        );
      }),
    ),
);
