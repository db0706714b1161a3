import { defineAgent } from 'rivulet';
import { Work } from './_work.js';

const about = { name: 'checkout', description: 'Books and pays, and undoes it if that fails.' };

export default defineAgent(
  about,
  async (input, context) => {
    const work = new Work(input, context);
    const key = await work.draw('key');
    try {
      const lock = await work.step('lock', { key });
      const fee = await work.draw('fee');
      const booking = await work.step('book', { key, lock, fee });
      await work.step('pay', { key, fee, booking });
      await work.step('mail', { booking });
      return 'done';
    } catch (error) {
      work.undo('refund');
      throw error;
    } finally {
      work.undo('unlock');
    }
  },
  { durable: true },
);
