import { defineAgent, type Message } from 'rivulet';
import { from } from 'rxjs';

const textOf = ({ parts }: Message): string => parts.map((part) => part.content ?? '').join('');

/** A helper for the others. */
export default defineAgent(
  {
    name: 'reverse',
    description: 'Says the words of the text in reverse order.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'helper'] },
  },
  (input) => {
    const words = input.map(textOf).join('\n').match(/\S+/g) ?? [];
    return from(words.reverse().map((word, index) => (index === 0 ? word : ` ${word}`)));
  },
);
