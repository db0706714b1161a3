import { defineAgent } from 'rivulet';
import { Work } from './_work.js';

const about = { name: 'turn', description: 'Uses the state that the run before it in the session has left.' };

export default defineAgent(
  about,
  async (input, context) => {
    const work = new Work(input, context);
    try {
      const before = (await context.session.state())?.token ?? 'none';
      const token = await work.draw('token');
      await work.step('post', { before, token });
      await context.session.setState({ token });
      await work.step('tell', { token });
      return 'done';
    } finally {
      work.undo('close');
    }
  },
  { durable: true },
);
