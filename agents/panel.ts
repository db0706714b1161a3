import { type AgentContext, defineAgent, type Message, textOf } from 'rivulet';
import {
  catchError,
  concat,
  concatMap,
  filter,
  map,
  merge,
  type Observable,
  of,
  race,
  reduce,
  switchMap,
  throwError,
  throwIfEmpty,
  timer,
} from 'rxjs';

const requestTimeout = 5_000; // milliseconds until the model's first token

/** Agents are Observables, so RxJS operators compose them. */
export default defineAgent(
  {
    name: 'panel',
    description: 'Gives a text to several agents at once, and puts together what they make of it.',
    input_content_types: ['text/plain', 'text/markdown'],
    output_content_types: ['text/plain'],
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example', 'composition'],
      examples: ['The river rises in the hills. The river feeds the lake. The lake feeds the town.'],
      dependencies: [
        { type: 'agent', name: 'echo' },
        { type: 'agent', name: 'summarize' },
        { type: 'agent', name: 'chat' },
      ],
    },
  },
  (input, context) => {
    // In parallel: each result is emitted when it is complete.
    const echoed = whole(ask(context, 'echo', input)).pipe(map((text) => `You said: ${text}\n`));
    // A chain: the summary is the next agent's input.
    const summarized = whole(ask(context, 'summarize', input)).pipe(
      concatMap((summary) => concat(of(`Summary: ${summary}\nTitle: `), titleOf(summary, context))),
    );
    return merge(echoed, summarized);
  },
);

function titleOf(summary: string, context: AgentContext): Observable<string> {
  const model = ask(context, 'chat', `Give this a title, and say nothing else: ${summary}`).pipe(
    throwIfEmpty(() => new Error('the model said nothing')),
  );
  const tooLate = timer(requestTimeout).pipe(switchMap(() => throwError(() => new Error('the model takes too long'))));
  // A race: the model wins with its first token. A fallback: there may be no model.
  return race(model, tooLate).pipe(
    catchError((error: Error) => {
      context.log.info(`the title is the summary's: ${error.message}`);
      return of(firstWords(summary));
    }),
  );
}

/** The text of another agent's output. */
const ask = (context: AgentContext, agent: string, input: string | Message[]): Observable<string> =>
  context.call(agent, input).pipe(
    map(textOf),
    filter((text) => text !== ''),
  );

const whole = (text: Observable<string>): Observable<string> => text.pipe(reduce((all, piece) => all + piece, ''));

const firstWords = (text: string): string => text.split(' ', 5).join(' ');
