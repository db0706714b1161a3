import {
  concat,
  concatMap,
  interval,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  startWith,
  take,
  toArray,
} from 'rxjs';
import { AgentError, citation, file, json, progress, textOf, trajectory } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';

const yesOrNo = { type: 'boolean' };

/** Every kind of part, a question, and what follows from its reply. */
export const showcase = agent('showcase', async function* (input, context) {
  yield trajectory({ message: 'Thinking of it.' });
  for (const word of ['It ', 'is ', '“so”: \\ ', '✓.\n']) yield word;
  yield citation({ url: 'https://example.com/a', title: 'A', start_index: 0, end_index: 5 });
  yield trajectory({ tool_name: 'look', tool_input: { at: 'sky' }, tool_output: { colour: 'blue' } });
  yield file('a.png', new Uint8Array([137, 80, 78, 71, 0]), 'image/png');
  yield json({ answer: 42 });
  yield progress('Half of it', { done: 1, total: 2 });
  const { message } = await context.await('Shall I go on?', { schema: yesOrNo });
  yield `You said ${textOf(message)} to ${textOf(input)}. `;
  for (let n = 0; n < 5; n += 1) yield `${n} `;
});

export const asksTwice = agent('twice', async function* (_, context) {
  for (const question of ['Sure?', 'Really?']) yield `${textOf((await context.await(question)).message)}. `;
});

/** Goes on to speak while it awaits a reply, for each text of `said`. */
export const talks = (said: Observable<string>) =>
  agent('talks', (_, context) => {
    const reply = context.await('Well?').pipe(map(({ message }) => `You said ${textOf(message)}.`));
    return concat(of('one '), merge(reply, said));
  });

/** Asks for a tool of the page. */
export const browses = agent('browses', async function* (_, context) {
  const { message } = await context.await('Where are you?', { tool: { name: 'locate', input: { exact: true } } });
  yield `You are at ${textOf(message)}.`;
});

export const fails = agent('fails', async function* () {
  yield 'I begin. ';
  throw new AgentError('no_ink', 'The pen is empty.');
});

/** Calls a tool whose result has keys that could change a prototype. */
export const pollutes = agent('pollutes', () => [
  trajectory({
    tool_name: 'look',
    tool_output: JSON.parse('{"kept":1,"__proto__":{"x":1},"a":[{"constructor":{"prototype":{}}}]}'),
  }),
]);

/** What it sees of the request. */
export const sees = agent('sees', (_, { request }) => [JSON.stringify(request)]);

/** How many messages came before, and the text of the input. */
export const counts = agent('counts', async function* (input, { session }) {
  const before = (await lastValueFrom(session.history.pipe(toArray()))).map(textOf);
  yield `${textOf(input)} after [${before.join(' | ')}]`;
});

/** A token, and then no end. */
export const hangs = agent('hangs', () => NEVER.pipe(startWith('Once ')));

/** As many tokens as its input says, one a millisecond. */
export const ticks = agent('ticks', (input) =>
  interval(1).pipe(
    take(Number(textOf(input))),
    concatMap((n) => [`${n} `]),
  ),
);
