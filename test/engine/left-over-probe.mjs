import { defineAgent, textOf } from 'rivulet';
import { runAgent } from 'rivulet/testing';

// In JavaScript, for the build: tsx would take a second to compile the sources.
// Prints how the runs end. Each leaves a promise behind that no code handles; Node would end the process.
const ask = async (context, question) => textOf((await context.await(question)).message);

for (const durable of [false, true]) {
  const leaves = defineAgent(
    { name: 'leaves', description: 'Ends with an open question.' },
    async (_, context) => {
      void ask(context, 'Really?');
      await new Promise(setImmediate);
      return 'done';
    },
    { durable },
  );
  const asksTwice = defineAgent(
    { name: 'asks-twice', description: 'Asks twice, and waits for one reply after the other.' },
    async (_, context) => {
      const [first, second] = [ask(context, '1?'), ask(context, '2?')];
      return [await first, await second];
    },
    { durable },
  );
  // A function is not waited for, so that the run goes on to its end.
  const { run: left } = await runAgent(leaves, 'go', { answers: () => undefined });
  const cancel = new AbortController();
  const answers = () => void setImmediate(() => cancel.abort());
  const { run: cancelled } = await runAgent(asksTwice, 'go', { answers, signal: cancel.signal });
  await new Promise(setImmediate);
  console.log(left.status, cancelled.status);
}
await new Promise((resolve) => setTimeout(resolve, 20));
console.log('alive');
// Not of a run: as without Rivulet, the process ends.
void Promise.reject(new Error('stray'));
await new Promise((resolve) => setTimeout(resolve, 20));
console.log('alive after another rejection');
