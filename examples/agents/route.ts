import { defineAgent, type Message } from 'rivulet';
import { concat, of } from 'rxjs';

// The first that fits; a model that picks a name from a list would stand here just as well.
const routes = [
  { when: /\bhow many\b/i, agent: 'count-words' },
  { when: /\b(loud|shout)/i, agent: 'upper' },
];
const otherwise = 'reverse';

const textOf = ({ parts }: Message): string => parts.map((part) => part.content ?? '').join('');

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
    const text = input.map(textOf).join('\n');
    const agent = routes.find(({ when }) => when.test(text))?.agent ?? otherwise;
    return concat(
      of({ metadata: { kind: 'trajectory' as const, message: `Sent to ${agent}.` } }),
      context.call(agent, input),
    );
  },
);
