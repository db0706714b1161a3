import { defineAgent } from 'rivulet';
import { from } from 'rxjs';

/** The smallest agent: returns each input message. */
export default defineAgent(
  {
    name: 'echo',
    description: 'Returns each message it receives.',
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example'],
      examples: ['Hello, **world**'],
    },
  },
  (input) => from(input),
);
