import { defineAgent, textOf } from 'rivulet';
import { from } from 'rxjs';

/** A helper for the other examples. */
export default defineAgent(
  {
    name: 'reverse',
    description: 'Says the words of the text in reverse order.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'helper'] },
  },
  (input) => {
    const words = textOf(input).match(/\S+/g) ?? [];
    return from(words.reverse().map((word, index) => (index === 0 ? word : ` ${word}`)));
  },
);
