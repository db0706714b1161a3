import { defineAgent, textOf } from 'rivulet';

/** Asks before it acts: the run is `awaiting` until the reply comes, however long that takes. */
export default defineAgent(
  {
    name: 'approve',
    description: 'Asks for approval before it acts.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'human-in-the-loop'] },
  },
  async function* (input, context) {
    const action = textOf(input);
    yield `I am about to do this: ${action}\n`;
    const { message } = await context.await('Shall I? Answer yes or no.');
    const approved = /^\s*(y|yes|ok|sure)\b/i.test(textOf(message));
    yield approved ? `Done: ${action}` : 'Then I leave it.';
  },
  // A reply may take a day: a restart meanwhile must not lose the question.
  { durable: true },
);
