import { defineAgent, textOf, trajectory } from 'rivulet';
import { concat, of } from 'rxjs';

// The first match is used. A language model could select the name instead.
const routes = [
  { when: /\bhow many\b/i, agent: 'count-words' },
  { when: /\b(loud|shout)/i, agent: 'upper' },
];
const fallback = 'reverse';

/**
 * A router: selects an agent by the input, and streams its output token by token. A trajectory part names the selected
 * agent, outside of the output's text.
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
      dependencies: [...routes.map(({ agent }) => agent), fallback].map((name) => ({ type: 'agent', name })),
    },
  },
  (input, context) => {
    const text = textOf(input);
    const agent = routes.find(({ when }) => when.test(text))?.agent ?? fallback;
    return concat(of(trajectory({ message: `Sent to ${agent}.` })), context.call(agent, input));
  },
);
