import { defineAgent, type Message } from 'rivulet';
import { concat, defer, map, of, switchMap } from 'rxjs';

const textOf = ({ parts }: Message): string => parts.map((part) => part.content ?? '').join('');

/** Asks before it acts: the run is `awaiting` until somebody answers, however long that takes. */
export default defineAgent(
  {
    name: 'approve',
    description: 'Asks for approval before it acts.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'human-in-the-loop'] },
  },
  (input, context) => {
    const action = input.map(textOf).join('\n');
    return concat(
      of(`I am about to do this: ${action}\n`),
      context.await('Shall I? Answer yes or no.').pipe(
        map(({ message }) => /^\s*(y|yes|ok|sure)\b/i.test(textOf(message))),
        switchMap((approved) => (approved ? defer(() => of(`Done: ${action}`)) : of('Then I leave it.'))),
      ),
    );
  },
  // Whoever is asked may take a day: a restart meanwhile must not cost the question.
  { durable: true },
);
