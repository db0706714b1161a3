import { defineAgent, file, textOf } from 'rivulet';
import { connect, map, merge, reduce, toArray } from 'rxjs';

const agents = ['count-words', 'reverse', 'upper'];

/**
 * Several agents at once. Each one's answer is an artifact of its own, sent as soon as it is whole,
 * so that a slow agent holds back no other; what needs all of them comes last.
 *
 * `merge` is first come, first served. Where only the whole counts, `forkJoin` gives all answers at once,
 * in the order they were asked. If one fails, the run fails and the others are cancelled.
 */
export default defineAgent(
  {
    name: 'parallel',
    description: `Asks ${agents.join(', ')} at the same time.`,
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example', 'composition'],
      dependencies: agents.map((name) => ({ type: 'agent', name })),
    },
  },
  (input, context) => {
    const answers = agents.map((name) =>
      context.call(name, input).pipe(
        reduce((text, output) => text + textOf(output), ''),
        map((text) => file(`${name}.txt`, text)),
      ),
    );
    return merge(...answers).pipe(
      // `connect` lets two read the answers while every agent is asked only once.
      connect((answer) => {
        const summary = answer.pipe(
          toArray(),
          map((all) => `In the order they answered: ${all.map(({ name }) => name).join(', ')}`),
        );
        return merge(answer, summary);
      }),
    );
  },
);
