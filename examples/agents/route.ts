import { defineAgent, textOf, trajectory } from 'rivulet';
import { concat, of } from 'rxjs';

// The first that fits; a model that picks a name from a list would stand here just as well.
const routes = [
  { when: /\bhow many\b/i, agent: 'count-words' },
  { when: /\b(loud|shout)/i, agent: 'upper' },
];
const otherwise = 'reverse';

/**
 * A router: looks at the input, picks an agent, and gets out of the way. The answer streams through
 * it token by token. Which agent it picked is told as a trajectory, beside the answer and not in it.
 */
export default defineAgent(
  {
    name: 'route',
    description: 'Sends each message to the agent that fits it.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example', 'composition'],
      dependencies: [...routes.map(({ agent }) => agent), otherwise].map((name) => ({ type: 'agent', name })),
    },
  },
  (input, context) => {
    const text = textOf(input);
    const agent = routes.find(({ when }) => when.test(text))?.agent ?? otherwise;
    return concat(of(trajectory({ message: `Sent to ${agent}.` })), context.call(agent, input));
  },
);
