import { defineAgent, textOf } from 'rivulet';
import { of } from 'rxjs';

/** A helper for the other examples. */
export default defineAgent(
  {
    name: 'count-words',
    description: 'Says how many words the text has.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'helper'] },
  },
  (input) => {
    const { length } = textOf(input).match(/\S+/g) ?? [];
    return of(length === 1 ? '1 word' : `${length} words`);
  },
);
