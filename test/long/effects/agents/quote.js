import { defineAgent } from 'rivulet';
import { Work } from './_work.js';

export default defineAgent(
  { name: 'quote', description: 'Names a price, for the agent caller.' },
  async (input, context) => {
    const work = new Work(input, context, true);
    const price = await work.draw('price');
    const check = await work.step('check', { price });
    await work.rest();
    const stamp = await work.step('stamp', { price, check });
    return `${price}-${stamp}`;
  },
  { durable: true },
);
