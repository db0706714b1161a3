import { defineAgent, textOf } from 'rivulet';
import { concatMap, finalize, merge } from 'rxjs';
import { Work } from './_work.js';

const about = { name: 'approve', description: 'Reminds and escalates while it asks; ships after the reply.' };

export default defineAgent(
  about,
  (input, context) => {
    const work = new Work(input, context);
    const asking = context.await(work.question);
    const reminding = work.step('remind');
    return merge(
      asking.pipe(concatMap(({ message }) => work.step('ship', { reply: textOf(message) }))),
      reminding.pipe(concatMap((remind) => work.step('escalate', { remind }))),
    ).pipe(finalize(() => work.undo('close')));
  },
  { durable: true },
);
