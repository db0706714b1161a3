import { concat, map, merge, of, race, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AwaitResume, Run } from '../../src/index.ts';
import { agent, askOnce } from '../support/agents.ts';
import { ask, eventsOf, serveApi, textOf, types } from '../support/serve.ts';

const reply = (content: string, mode = 'sync') => ({
  mode,
  await_resume: { type: 'message', message: { parts: [{ content }] } },
});
const said = ({ message }: AwaitResume): string => `${message.parts[0]?.content};`;

describe('a run that awaits', () => {
  it('completes the open message, and has the await request exactly while it awaits', async () => {
    const served = await serveApi([askOnce]);
    const run: Run = await (await served.post('/runs', ask('ask'))).json();
    expect(run).toMatchObject({
      status: 'awaiting',
      await_request: { type: 'message', message: { role: 'agent/ask', parts: [{ content: 'Well?' }] } },
      output: [{ parts: [{ content: 'before. ' }], completed_at: expect.any(String) }],
    });
    const done: Run = await (await served.post(`/runs/${run.run_id}`, reply('yes'))).json();
    expect(done.status).toBe('completed');
    expect(done.await_request).toBeUndefined();
    expect(types(await eventsOf(served, run.run_id))).toEqual([
      'run.created',
      'run.in-progress',
      'message.created',
      'message.part',
      'message.completed',
      'run.awaiting',
      'run.in-progress',
      'message.created',
      'message.part',
      'message.completed',
      'run.completed',
    ]);
  });

  it('takes a reply without parts, as ACP clients may send it', async () => {
    const served = await serveApi([
      agent('confirm', (_, context) => context.await('OK?').pipe(map(() => 'confirmed'))),
    ]);
    const { run_id } = await (await served.post('/runs', ask('confirm'))).json();
    const body = { mode: 'sync', run_id, await_resume: { type: 'message', message: { role: 'user', parts: [] } } };
    expect(textOf(await (await served.post(`/runs/${run_id}`, body)).json())).toBe('confirmed');
  });

  it('asks questions one after the other, even if the agent asks them at once', async () => {
    const twice = agent('twice', (_, context) =>
      merge(context.await('first?').pipe(map(said)), context.await('second?').pipe(map(said))),
    );
    const served = await serveApi([twice]);
    const first: Run = await (await served.post('/runs', ask('twice'))).json();
    expect(first.await_request?.message.parts[0]?.content).toBe('first?');
    const second: Run = await (await served.post(`/runs/${first.run_id}`, reply('1'))).json();
    expect(second.status).toBe('awaiting');
    expect(second.await_request?.message.parts[0]?.content).toBe('second?');
    const done: Run = await (await served.post(`/runs/${first.run_id}`, reply('2'))).json();
    expect(done.status).toBe('completed');
    expect(textOf(done)).toBe('1;2;');
  });

  it('goes on when the agent unsubscribes from its question', async () => {
    const impatient = agent('impatient', (_, context) =>
      concat(race(context.await('anything?').pipe(map(said)), timer(5).pipe(map(() => 'nothing.'))), of(' bye')),
    );
    const served = await serveApi([impatient]);
    const stream = await served.post('/runs', ask('impatient', 'go', { mode: 'async' }));
    const { run_id } = await stream.json();
    const tail = await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' });
    await tail.text();
    const seen = types(await eventsOf(served, run_id)).filter((type) => type.startsWith('run.'));
    expect(seen).toEqual(['run.created', 'run.in-progress', 'run.awaiting', 'run.in-progress', 'run.completed']);
    expect(textOf(await (await served.get(`/runs/${run_id}`)).json())).toBe('nothing. bye');
  });

  it('accepts one of two replies that arrive at the same time, and answers the other with 409', async () => {
    const served = await serveApi([askOnce]);
    const { run_id } = await (await served.post('/runs', ask('ask'))).json();
    const answers = await Promise.all(['a', 'b'].map((text) => served.post(`/runs/${run_id}`, reply(text))));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  it('can be cancelled', async () => {
    const served = await serveApi([askOnce]);
    const { run_id } = await (await served.post('/runs', ask('ask'))).json();
    const cancelling: Run = await (await served.post(`/runs/${run_id}/cancel`)).json();
    expect(cancelling.status).toBe('cancelling');
    expect(cancelling.await_request).toBeUndefined();
    await (await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' })).text();
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('cancelled');
  });

  it('keeps a live stream open over the await, to the end', async () => {
    const served = await serveApi([askOnce]);
    const { run_id } = await (await served.post('/runs', ask('ask'))).json();
    const tail = await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' });
    await served.post(`/runs/${run_id}`, reply('yes', 'async'));
    expect(await tail.text()).toContain('"type":"run.completed"');
  });
});
