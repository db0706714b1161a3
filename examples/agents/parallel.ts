import { defineAgent, file, textOf } from 'rivulet';
import { connect, map, merge, reduce, toArray } from 'rxjs';

const agents = ['count-words', 'reverse', 'upper'];

/**
 * Several agents at the same time. Each answer is an artifact that is sent when it is complete, so a slow agent does not
 * delay the others. The summary, which needs all answers, comes last.
 *
 * `merge` emits answers in order of completion; `forkJoin` would emit all together, in the order of the agents. If one
 * fails, the run fails and the others are cancelled.
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
      // `connect` shares the answers with two subscribers, so that each agent is called once.
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
