import { concat, concatMap, map, merge, of, race, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentContext, type Run, textOf } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { agent, echo } from '../support/agents.ts';
import { withoutInput } from '../support/details.ts';
import { atRest } from '../support/lives.ts';
import { nodes } from '../support/nodes.ts';
import { ask, eventsOf, finished, parked, type Served, serveApi } from '../support/serve.ts';

const answer = (content: string, more: object = {}) => ({
  await_resume: { message: { parts: [{ content }] }, ...more },
});

const orders = (_: unknown, context: AgentContext) =>
  concat(
    of('Two questions. '),
    context.await('How many?').pipe(map(({ message }) => `${textOf(message)} it is. `)),
    context.await('Which colour?').pipe(map(({ message }) => `In ${textOf(message)}.`)),
  );
const ordering = (durable: boolean) => ({ ...agent('orders', orders), options: { durable } });

/** Runs the agent to its end with two replies. */
async function ordered(served: Served, session_id?: string): Promise<Run> {
  const body = ask('orders', 'hi', session_id === undefined ? {} : { session_id });
  const { run_id }: Run = await (await served.post('/runs', body)).json();
  await served.post(`/runs/${run_id}`, answer('three'), { 'Rivulet-Channel': 'playground' });
  return (await served.post(`/runs/${run_id}`, answer('red'))).json();
}

const shown = ({ questions = [] }: Run) =>
  questions.map(({ request, reply, position }) => [
    textOf(request.message),
    reply && textOf(reply.message),
    reply?.channel,
    position,
  ]);

describe.each([
  ['memory:', false],
  ['memory:', true],
  ['sqlite::memory:', true],
])('the record of questions and replies, on %s (durable: %s)', (store, durable) => {
  it('is in the Run, with time, channel and the place in the output', async () => {
    const served = await serveApi([ordering(durable)], { store });
    const run = await ordered(served);
    expect(shown(run)).toEqual([
      ['How many?', 'three', 'playground', 1],
      ['Which colour?', 'red', 'api', 2],
    ]);
    for (const { request, reply } of run.questions ?? []) {
      expect(request.message).toMatchObject({ role: 'agent/orders', created_at: expect.any(String) });
      expect(reply).toMatchObject({ id: request.id, received_at: expect.any(String), message: { role: 'user' } });
    }
    expect(withoutInput(await finished(served, run.run_id))).toEqual(run);
  });

  it('is in the events: the question in run.awaiting, the reply in the run.in-progress after it, all at the end', async () => {
    const served = await serveApi([ordering(durable)], { store });
    const run = await ordered(served);
    const events = (await eventsOf(served, run.run_id)).flatMap((event) => ('run' in event ? [event] : []));
    expect(
      events.flatMap(({ type, run }) => (run.await_resume ? [[type, textOf(run.await_resume.message)]] : [])),
    ).toEqual([
      ['run.in-progress', 'three'],
      ['run.in-progress', 'red'],
    ]);
    const [last, ...before] = events.toReversed();
    expect(last?.run).toEqual(run);
    // Each event has its own entry only, so that the log grows with the questions, and not with their square.
    for (const event of before) expect(event.run.questions).toBeUndefined();
  });

  it('is in the history of the session, in the order of the conversation', async () => {
    const served = await serveApi([ordering(durable)], { store });
    const session_id = '11111111-2222-4333-8444-000000000001';
    await ordered(served, session_id);
    const { history } = await (await served.get(`/sessions/${session_id}`)).json();
    const messages = [];
    for (const url of history) messages.push(await (await served.get(new URL(url).pathname)).json());
    expect(messages.map((message) => [message.role, textOf(message)])).toEqual([
      ['user', 'hi'],
      ['agent/orders', 'Two questions. '],
      ['agent/orders', 'How many?'],
      ['user', 'three'],
      ['agent/orders', 'three it is. '],
      ['agent/orders', 'Which colour?'],
      ['user', 'red'],
      ['agent/orders', 'In red.'],
    ]);
  });
});

describe('the record of a run', () => {
  it('is set by the server: a client cannot name the channel, the principal or the time of its reply in the body', async () => {
    const served = await serveApi([ordering(false)]);
    const { run_id }: Run = await (await served.post('/runs', ask('orders'))).json();
    const forged = { channel: 'phone', principal: 'the boss', received_at: '1999-01-01T00:00:00Z', note: 'kept' };
    const run: Run = await (await served.post(`/runs/${run_id}`, answer('three', forged))).json();
    const [{ reply } = { reply: undefined }] = run.questions ?? [];
    expect(reply).toMatchObject({ channel: 'api', note: 'kept' });
    expect(reply?.principal).toBeUndefined();
    expect(reply?.received_at).not.toMatch(/^1999/);
  });

  it('refuses a channel that is no short name with 422', async () => {
    const served = await serveApi([ordering(false)]);
    const { run_id }: Run = await (await served.post('/runs', ask('orders'))).json();
    for (const channel of ['Two words', 'x'.repeat(65), '<b>'])
      expect((await served.post(`/runs/${run_id}`, answer('three'), { 'Rivulet-Channel': channel })).status).toBe(422);
  });

  it('keeps a question without a reply: while it is open, after a cancel, and where the agent withdrew it', async () => {
    const impatient = agent('impatient', (_, context) =>
      race(context.await('Well?'), timer(1)).pipe(concatMap(() => of('Never mind.'))),
    );
    const served = await serveApi([ordering(false), impatient]);
    const open: Run = await (await served.post('/runs', ask('orders'))).json();
    expect(shown(open)).toEqual([['How many?', undefined, undefined, 1]]);
    await served.post(`/runs/${open.run_id}/cancel`, {});
    expect(shown(await finished(served, open.run_id))).toEqual([['How many?', undefined, undefined, 1]]);
    const withdrawn: Run = await (await served.post('/runs', ask('impatient', 'hi', { mode: 'async' }))).json();
    expect(shown(await finished(served, withdrawn.run_id))).toEqual([['Well?', undefined, undefined, 0]]);
  });

  it('has the reply that another node received', async () => {
    const { node, queue } = nodes([ordering(false)]);
    const [a, b] = [await node('a'), await node('b')];
    queue.next = 'a';
    const { run_id }: Run = await (await a.post('/runs', ask('orders'))).json();
    await b.post(`/runs/${run_id}`, answer('three'), { 'Rivulet-Channel': 'cli' });
    await a.post(`/runs/${run_id}`, answer('red'));
    for (const one of [a, b])
      expect(shown(await finished(one, run_id))).toEqual([
        ['How many?', 'three', 'cli', 1],
        ['Which colour?', 'red', 'api', 2],
      ]);
  });

  it('is complete while a run is parked, and after it is cancelled there', async () => {
    const store = new MemoryStore();
    const before = await serveApi([ordering(true)], { store, limits: { passivateAfter: 1, sweepInterval: 1 } });
    const { run_id }: Run = await (await before.post('/runs', ask('orders'))).json();
    await before.post(`/runs/${run_id}`, answer('three'));
    await atRest(store, run_id);
    await before.app.close();
    const after = await serveApi([{ ...agent('orders', () => of('Another text.')), options: { durable: true } }], {
      store,
    });
    await after.post(`/runs/${run_id}`, { ...answer('red'), mode: 'async' });
    const both = [
      ['How many?', 'three', 'api', 1],
      ['Which colour?', 'red', 'api', 2],
    ];
    expect(shown(await parked(after, run_id))).toEqual(both);
    await after.post(`/runs/${run_id}/cancel`, {});
    expect(shown(await finished(after, run_id))).toEqual(both);
  });

  it('has questions that were asked side by side one after the other', async () => {
    const both = agent('both', (_, context) =>
      merge(context.await('A?'), context.await('B?')).pipe(map(({ message }) => textOf(message))),
    );
    const served = await serveApi([both]);
    const { run_id }: Run = await (await served.post('/runs', ask('both'))).json();
    await served.post(`/runs/${run_id}`, answer('a'));
    const run: Run = await (await served.post(`/runs/${run_id}`, answer('b'))).json();
    expect(shown(run).map(([question, reply]) => [question, reply])).toEqual([
      ['A?', 'a'],
      ['B?', 'b'],
    ]);
  });
});

describe.each(['memory:', 'sqlite::memory:'])('the input of a run, on %s', (store) => {
  it('is kept while the run goes on and after its end; a list has the beginning of its text', async () => {
    const served = await serveApi([ordering(false), echo], { store });
    const parts = [{ content: 'one' }, { content_type: 'application/json', content: '{"a":1}' }];
    for (const name of ['orders', 'echo']) {
      const body = { agent_name: name, input: [{ parts }, { role: 'agent/x', parts: [{ content: 'two' }] }] };
      const { run_id, status }: Run = await (await served.post('/runs', body)).json();
      const { input } = await (await served.get(`/runs/${run_id}`)).json();
      expect([name, status, input]).toMatchObject([
        name,
        name === 'echo' ? 'completed' : 'awaiting',
        [
          { role: 'user', parts: [{ content: 'one', content_type: 'text/plain' }, parts[1]] },
          { role: 'agent/x', parts: [{ content: 'two' }] },
        ],
      ]);
    }
    const { runs } = await (await served.get('/runs')).json();
    expect(runs.map(({ title }: { title: string }) => title)).toEqual(['one two', 'one two']);
  });
});
