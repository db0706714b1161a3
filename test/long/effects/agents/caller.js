import { defineAgent, textOf } from 'rivulet';
import { Work } from './_work.js';

const about = { name: 'caller', description: 'Orders at the price of another agent, and ships after the reply.' };

export default defineAgent(
  about,
  async function* (input, context) {
    const work = new Work(input, context);
    const key = await work.draw('key');
    yield 'asks ';
    try {
      const calling = context.call('quote', textOf(input));
      const asking = work.order.reply === undefined ? undefined : context.await(work.question);
      const [answer, reply] = await Promise.all([calling, asking]);
      const quote = textOf(answer);
      yield 'orders ';
      await work.step('order', { key, quote, ...(reply && { reply: textOf(reply.message) }) });
      yield 'ships ';
      await work.step('ship', { key, quote });
    } finally {
      work.undo('close');
    }
  },
  { durable: true },
);
