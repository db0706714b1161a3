import { type Agent, AgentError, citation, defineAgent, file, json, progress, textOf, trajectory } from 'rivulet';
import { concat, NEVER, of } from 'rxjs';

/** Emits everything that an agent can emit. */
const everything = defineAgent({ name: 'everything', description: 'Says all.' }, async function* (input, context) {
  yield 'You said ';
  yield textOf(input);
  yield citation({ url: 'https://example.com/', start_index: 0, end_index: 3 });
  yield trajectory({ message: 'Looked.', tool_name: 'look', tool_input: { at: 1 }, tool_output: { seen: true } });
  yield progress('half', { done: 1, total: 2 });
  yield { role: 'agent', parts: [] };
  yield 'A second message.';
  yield json({ rows: [1, 2] });
  yield file('dot.png', new Uint8Array([137, 80, 0, 255]), 'image/png');
  context.usage({ tokens: 7, input_tokens: 3, output_tokens: 4 });
});

/** Asks twice, with a schema, and says what it got. */
const asking = defineAgent(
  { name: 'asking', description: 'Asks.' },
  async function* (_, context) {
    yield 'Before. ';
    const first = await context.await('How many?', { schema: { type: 'integer', minimum: 1 } });
    yield `First ${textOf(first.message)}. `;
    const second = await context.await('And then?');
    yield `Second ${textOf(second.message)}.`;
  },
  { durable: true },
);

const failing = defineAgent({ name: 'failing', description: 'Fails.' }, async function* () {
  yield 'So far. ';
  throw new AgentError('out_of_tea', 'There is no tea left.', { cups: 0 });
});

/** Emits a token, and never ends. */
const endless = defineAgent({ name: 'endless', description: 'Never ends.' }, () => concat(of('One. '), NEVER));

/** Counts to the number of its input, slowly enough that a connection can break in between. */
const counting = defineAgent({ name: 'counting', description: 'Counts.' }, async function* (input) {
  for (let n = 1; n <= Number(textOf(input)); n += 1) {
    yield `${n} `;
    await new Promise((resolve) => setImmediate(resolve));
  }
});

const remembering = defineAgent({ name: 'remembering', description: 'Remembers.' }, async (_, { session }) => {
  let count = 0;
  await session.history.forEach(() => {
    count += 1;
  });
  return `${count} messages before.`;
});

export const agents: Agent[] = [everything, asking, failing, endless, counting, remembering];
