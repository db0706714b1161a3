import { type AgentFunction, defineAgent, textOf } from 'rivulet';
import { cutEverywhere } from 'rivulet/testing';
import { concat, map, merge, of, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';

const durable = (run: AgentFunction) => defineAgent({ name: 'cut', description: 'Is cut.' }, run, { durable: true });

describe('cutEverywhere', () => {
  it('ends each life as the first one, with questions, steps, calls, history and state', async () => {
    let worked = 0;
    const agent = durable(async function* (input, context) {
      yield `${textOf(input)} ${await context.session.state<number>()} `;
      yield await context.step('work', () => timer(1).pipe(map(() => `worked ${++worked > 0} `)));
      const { message } = await context.await('Go on?');
      yield textOf(message);
      yield await context.call('other', 'x');
    });
    const { cuts, run } = await cutEverywhere(agent, 'go', {
      answers: ['yes'],
      calls: { other: 'called' },
      history: [{ role: 'user', parts: [{ content: 'before' }] }],
      state: 3,
    });
    expect(run.output.map(textOf).join('')).toBe('go 3 worked true yescalled');
    expect(cuts).toBeGreaterThan(3);
    expect(worked).toBeGreaterThan(1);
  });

  it('stops the agent after a refused reply', async () => {
    const stopped = new Promise((resolve) => {
      const agent = durable((_, context) => {
        context.signal.addEventListener('abort', resolve);
        return context.await('2?', { schema: { type: 'integer' } }).pipe(map(() => 'replied'));
      });
      void expect(cutEverywhere(agent, 'go', { answers: ['two'] }))
        .rejects.toThrow('must be integer')
        .then(() => setImmediate(resolve));
    });
    expect(await stopped).toBeInstanceOf(Event);
  });

  it('throws where a life ends otherwise, and says after which commit', async () => {
    let life = 0;
    const agent = durable((_, context) => {
      life += 1;
      return concat(
        context.step('first', () => of('a')),
        of(`life ${life}`),
        context.step('last', () => of('b')),
      );
    });
    await expect(cutEverywhere(agent, 'go')).rejects.toThrow(/^agent cut ends otherwise:\ncut off after commit \d+: /);
  });

  it('throws where a life waits for a step that the log does not have', async () => {
    let life = 0;
    const agent = defineAgent(
      { name: 'renames', description: 'Has another step in each life.' },
      async (_, context) => {
        life += 1;
        const one = await context.step(`step ${life}`, async () => 1);
        return `${one} ${await context.step('last', async () => 2)}`;
      },
      { durable: true },
    );
    await expect(cutEverywhere(agent, 'go')).rejects.toThrow('agent renames ends otherwise');
  });

  it('compares what `endOf` answers, where branches side by side may come in any order', async () => {
    let swapped = 0;
    const agent = durable((_, context) => {
      swapped += 1;
      const step = (name: string, ms: number) => context.step(name, () => timer(ms).pipe(map(() => name)));
      return merge(step('a', swapped % 2 ? 1 : 9), step('b', swapped % 2 ? 9 : 1));
    });
    const sorted = {
      endOf: ({ output }: { output: Parameters<typeof textOf>[0][] }) => output.map(textOf).join('').split('').sort(),
    };
    expect((await cutEverywhere(agent, 'go', sorted)).cuts).toBeGreaterThan(0);
  });

  it('refuses an agent that is not durable', async () => {
    const agent = defineAgent({ name: 'plain', description: 'Is not durable.' }, () => 'x');
    await expect(cutEverywhere(agent, 'go')).rejects.toThrow('agent plain is not durable: define it with');
  });
});
