import { defineAgent, textOf } from 'rivulet';
import { from } from 'rxjs';

/** A helper for the other examples. It emits word by word, which shows the streaming. */
export default defineAgent(
  {
    name: 'upper',
    description: 'Says the text again in capitals, word by word.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'helper'] },
  },
  (input) => {
    const text = textOf(input).toUpperCase();
    return from(text.match(/\s*\S+/g) ?? []);
  },
);
