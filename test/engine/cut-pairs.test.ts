import { type AgentFunction, defineAgent, textOf } from 'rivulet';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { concat, from, map, merge, of, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';

const cut = (run: AgentFunction) => defineAgent({ name: 'cut', description: 'Cuts pairs.' }, run, { durable: true });
const halves = ['\ud83d', '\ude00'];

describe('an agent that cuts surrogate pairs', () => {
  it('has whole characters in each event', async () => {
    const { events } = await runAgent(
      cut(() => from(['a\ud83d', '\ude00', 'b\ud83d'])),
      'go',
    );
    const texts = events.flatMap((event) => (event.type === 'message.part' ? [event.part.content] : []));
    expect(texts).toEqual(['a', '😀', 'b', '\ufffd']);
  });

  it('may be called beside others', async () => {
    const slowly =
      (texts: string[]): AgentFunction =>
      () =>
        concat(...texts.map((text) => timer(1).pipe(map(() => text))));
    const { run } = await runAgent(
      cut((_, context) => merge(context.call('one', ''), context.call('two', ''))),
      'go',
      { calls: { one: slowly(halves), two: slowly(halves) } },
    );
    expect(run.output.map(textOf)).toEqual(['😀😀']);
  });

  it('records the same in each life', async () => {
    const agent = cut((_, context) =>
      concat(
        of('\ud83d'),
        context.step('second half', () => timer(1).pipe(map(() => '\ude00\ud83d'))),
        context.await('Go on?').pipe(map(() => '\ude01')),
      ),
    );
    const { cuts, run } = await cutEverywhere(agent, 'go', { answers: ['yes'] });
    expect(run.output.map(textOf)).toEqual(['😀', '😁']);
    expect(cuts).toBeGreaterThan(2);
  });
});
