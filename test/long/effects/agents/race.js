import { defineAgent, textOf } from 'rivulet';
import { concatMap, finalize, map, race } from 'rxjs';
import { Work } from './_work.js';

const about = { name: 'race', description: 'Decides after a reply, or without one when its escalation is done.' };

export default defineAgent(
  about,
  (input, context) => {
    const work = new Work(input, context);
    return race(
      context.await(work.question).pipe(map(({ message }) => ({ reply: textOf(message) }))),
      work.step('wait').pipe(
        concatMap((wait) => work.step('escalate', { wait })),
        map((escalate) => ({ escalate })),
      ),
    ).pipe(
      concatMap((values) => work.step('decide', values)),
      finalize(() => work.undo('close')),
    );
  },
  { durable: true },
);
