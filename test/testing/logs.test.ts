import { type Run, textOf } from 'rivulet';
import { text, toRun } from 'rivulet/client';
import { replayLog, runAgent, toMatchLog } from 'rivulet/testing';
import { from, lastValueFrom } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { agent, askOnce, echo } from '../support/agents.ts';

const recorded = async (...said: string[]) =>
  JSON.parse(
    JSON.stringify(
      (
        await runAgent(
          agent('says', () => from(said)),
          'go',
        )
      ).events,
    ),
  );

describe('toMatchLog', () => {
  it('ignores ids and times of another run', async () => {
    const { events } = await runAgent(askOnce, 'go', { answers: ['yes'], clock: () => 0 });
    const again = await runAgent(askOnce, 'go', { answers: ['yes'] });
    expect(events).not.toEqual(again.events);
    expect(toMatchLog(events, again.events).pass).toBe(true);
    expect.extend({ toMatchLog });
    expect(events).toMatchLog(again.events);
    expect(events).not.toMatchLog(events.slice(1));
  });

  it('ignores when a call of another agent began and ended, and no other field with this name', async () => {
    const caller = agent('caller', (_, context) => context.call('other', 'x'));
    const run = (time: number) => runAgent(caller, 'go', { calls: { other: 'called' }, clock: () => time });
    const [{ events }, again] = [await run(0), await run(1_000)];
    expect(JSON.stringify(events)).toContain('"kind":"call"');
    expect(toMatchLog(events, again.events).pass).toBe(true);
    const generic = (at: string) => [{ type: 'generic', generic: { kind: 'alarm', at } }];
    expect(toMatchLog(generic('a'), generic('b')).pass).toBe(false);
  });

  it('ignores through which channel a reply came, and nothing else that has this name', async () => {
    const { events } = await runAgent(askOnce, 'go', { answers: ['yes'] });
    const text = JSON.stringify(events);
    expect(text).toContain('"channel":"api"');
    expect(toMatchLog(events, JSON.parse(text.replaceAll('"channel":"api"', '"channel":"cli"'))).pass).toBe(true);
    const generic = (channel: string) => [{ type: 'generic', generic: { channel } }];
    expect(toMatchLog(generic('a'), generic('b')).pass).toBe(false);
  });

  it('names the first event that differs', async () => {
    const { pass, message } = toMatchLog(await recorded('a', 'b'), await recorded('a', 'c'));
    expect(pass).toBe(false);
    expect(message()).toMatch(
      /^event 5 differs from the recorded log: expected .*"content":"c".*, got .*"content":"b"/,
    );
  });

  it('fails where one log is shorter', async () => {
    const log = await recorded('a');
    expect(toMatchLog(log.slice(0, -1), log).message()).toMatch(/^event 6 .* got the end$/);
    expect(toMatchLog(log, log.slice(0, -1)).pass).toBe(false);
  });
});

describe('replayLog', () => {
  it('is a run stream, for each subscriber from its beginning', async () => {
    const { events, run } = await runAgent(echo, 'Hello');
    const stream = replayLog(JSON.parse(JSON.stringify(events)));
    for (let reader = 0; reader < 2; reader += 1) {
      const folded: Run = await lastValueFrom(stream.pipe(toRun()));
      expect(folded).toEqual(run);
    }
    expect(await lastValueFrom(stream.pipe(text()))).toBe(textOf(run.output));
    const looped = [];
    for await (const event of stream) looped.push(event);
    expect(looped).toEqual(events);
  });

  it('takes its time where it is told to, and stops with its subscriber', async () => {
    const log = await recorded('a', 'b');
    const seen: string[] = [];
    await new Promise<void>((resolve) => {
      const subscription = replayLog(log, { interval: 1 }).subscribe(({ type }) => {
        seen.push(type);
        if (seen.length < 3) return;
        subscription.unsubscribe();
        setTimeout(resolve, 5);
      });
    });
    expect(seen).toHaveLength(3);
  });

  it('leaves no timer behind when its subscriber leaves', async () => {
    const log = await recorded('a');
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const subscription = replayLog(log, { interval: 60_000 }).subscribe();
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(1);
    subscription.unsubscribe();
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('refuses what is no log', async () => {
    await expect(lastValueFrom(replayLog([{ type: 'run.created' }]))).rejects.toThrow(
      'event 1 of the log is malformed',
    );
  });
});
