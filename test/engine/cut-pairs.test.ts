import { AgentError, type AgentFunction, citation, defineAgent, sharedState, textOf } from 'rivulet';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { concat, from, ignoreElements, map, merge, of, throwError, timer } from 'rxjs';
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

describe('texts of an agent that are not well-formed', () => {
  it('have U+FFFD wherever they enter the log', async () => {
    const { events } = await runAgent(
      cut((_, context) =>
        concat(
          of(
            'a\ud83db',
            { content_type: 'text/markdown', content: 'c\ude00' },
            { ...citation({ url: 'https://a/', title: '\ud83d' }), name: '\ude00' },
            { role: 'agent', parts: [{ content: '\ud83d' }] },
            sharedState({ '\ud83d': ['\ude00'] }),
          ),
          context.await({ role: 'agent', parts: [{ content: 'Well\ud83d?' }] }).pipe(ignoreElements()),
          throwError(() => new AgentError('odd\ud83d', 'It broke\ud83d.', { why: '\ude00' })),
        ),
      ),
      'go',
      { answers: ['yes'] },
    );
    const log = JSON.stringify(events);
    expect(log.match(/\\ud[89a-f]/g)).toBeNull();
    expect(log.match(/\ufffd/g)?.length).toBeGreaterThan(9);
    expect(events.at(-1)?.type).toBe('run.failed');
  });

  it('make no part and no message where they are empty', async () => {
    const { events } = await runAgent(
      cut(() => from(['', { content: '' }])),
      'go',
    );
    expect(events.map(({ type }) => type)).toEqual(['run.created', 'run.in-progress', 'run.completed']);
  });
});
