import { defineAgent, textOf } from 'rivulet';

/** Asks before it acts: the run is `awaiting` until a client replies. */
export default defineAgent(
  {
    name: 'approve',
    description: 'Asks for approval before it acts.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example', 'human-in-the-loop'],
      examples: ['Open the sluice', 'Send the invoice to Ada'],
    },
  },
  async function* (input, context) {
    const action = textOf(input);
    yield `I am about to do this: ${action}\n`;
    const { message } = await context.await('Shall I? Answer yes or no.');
    const approved = /^\s*(y|yes|ok|sure)\b/i.test(textOf(message));
    yield approved ? `Done: ${action}` : 'Then I leave it.';
  },
  // The reply may take a day; a durable run survives a restart meanwhile.
  { durable: true },
);
