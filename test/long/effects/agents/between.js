import { defineAgent, textOf } from 'rivulet';
import { Work } from './_work.js';

const about = { name: 'between', description: 'Asks beside two steps, with plain time between the steps.' };

export default defineAgent(
  about,
  async (input, context) => {
    const work = new Work(input, context);
    const branch = async () => {
      const first = await work.step('first');
      await work.rest();
      await work.step('second', { first });
    };
    try {
      const [{ message }] = await Promise.all([context.await(work.question), branch()]);
      await work.step('ship', { reply: textOf(message) });
      return 'done';
    } finally {
      work.undo('close');
    }
  },
  { durable: true },
);
