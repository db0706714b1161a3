import { Readable } from 'node:stream';
import { type AgentFunction, defineAgent, textOf } from 'rivulet';
import { runAgent } from 'rivulet/testing';
import { concat, finalize, map, NEVER, race, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';

const agentOf = (run: AgentFunction, durable: boolean) =>
  defineAgent({ name: 'waits', description: 'Waits.' }, run, { durable });

describe.each([false, true])('what an agent awaits (durable: %s)', (durable) => {
  it.each<[string, (work: () => typeof NEVER) => [AgentFunction, Record<string, AgentFunction>]]>([
    ['a step', (work) => [async (_, context) => `${await context.step('long', work)}`, {}]],
    ['a call', (work) => [async (_, context) => [await context.call('other', 'go')], { other: () => work() }]],
  ])('stops when the run is cancelled, and the agent hears of it at once: %s', async (_, make) => {
    const cancel = new AbortController();
    const heard: unknown[] = [];
    const work = () => {
      setTimeout(() => cancel.abort());
      return NEVER.pipe(finalize(() => heard.push('stopped')));
    };
    const [run, calls] = make(work);
    const agent = agentOf(async (input, context) => {
      try {
        return (await run(input, context)) as string;
      } catch (error) {
        heard.push(error);
        throw error;
      }
    }, durable);
    // The agent has stopped, so the cancel does not wait for `cancelGrace`.
    const ran = await runAgent(agent, 'go', { signal: cancel.signal, calls, limits: { cancelGrace: 2 ** 31 - 1 } });
    expect(ran.run.status).toBe('cancelled');
    expect(heard).toEqual(['stopped', expect.objectContaining({ kind: 'run_not_open' })]);
  });

  it.each([
    ['ReadableStream', (cancel: () => void) => new ReadableStream<string>({ cancel })],
    ['Readable', (onClosed: () => void) => new Readable({ read() {} }).on('close', onClosed)],
  ])('may be a value of a %s, which is closed when the run is cancelled', async (_, make) => {
    const cancel = new AbortController();
    const heard: unknown[] = [];
    const agent = agentOf(() => {
      setTimeout(() => cancel.abort());
      return make(() => void heard.push('closed'));
    }, durable);
    const ran = await runAgent(agent, 'go', { signal: cancel.signal, limits: { cancelGrace: 2 ** 31 - 1 } });
    expect([ran.run.status, heard]).toEqual(['cancelled', ['closed']]);
  });

  it('is withdrawn with the call that it was made in, and the next question is put', async () => {
    const agent = agentOf(
      (_, context) =>
        concat(
          race(context.call('asks', 'go'), timer(1).pipe(map(() => 'gave up, '))),
          context.await('Second?').pipe(map(({ message }) => textOf(message))),
        ),
      durable,
    );
    const asks: AgentFunction = async (_, context) => textOf((await context.await('First?')).message);
    const answers = ({ message }: { message: Parameters<typeof textOf>[0] }) =>
      textOf(message) === 'Second?' ? 'two' : undefined;
    const { run, text } = await runAgent(agent, 'go', { answers, calls: { asks } });
    expect([run.status, text]).toEqual(['completed', 'gave up, \n\ntwo']);
  });
});
