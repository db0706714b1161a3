import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { agent, askOnce, echo, tokens } from '../support/agents.ts';
import { ask, frames, type Served, serveApi } from '../support/serve.ts';

const remove = (served: Served, path: string): Promise<Response> => fetch(`${served.url}${path}`, { method: 'DELETE' });
const key = (value: string, more = {}) => ({ 'idempotency-key': value, ...more });

describe.each(['memory:', 'sqlite::memory:'])('a request with an Idempotency-Key, on %s', (store) => {
  const counting = () => {
    const state = { runs: 0 };
    return { state, agent: agent('counted', () => `run ${++state.runs}`) };
  };

  it('creates one run, however often it is sent, and answers each request in its mode', async () => {
    const { agent: counted, state } = counting();
    const served = await serveApi([counted], { store });
    const first: Run = await (await served.post('/runs', ask('counted'), key('k1'))).json();
    const again: Run = await (await served.post('/runs', ask('counted'), key('k1'))).json();
    expect(again).toEqual(first);
    const later = await served.post('/runs', ask('counted', 'hi', { mode: 'async' }), key('k1'));
    expect([later.status, await later.json()]).toEqual([202, first]);
    const stream = await served.post('/runs', ask('counted', 'hi', { mode: 'stream' }), key('k1'));
    expect(stream.headers.get('run-id')).toBe(first.run_id);
    expect((await frames(stream)).map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(state.runs).toBe(1);
    await served.post('/runs', ask('counted'), key('k2'));
    expect(state.runs).toBe(2);
  });

  it('takes any text as the key of a request of another protocol', async () => {
    const { agent: counted, state } = counting();
    const served = await serveApi([counted], { store, protocols: ['a2a'] });
    const send = async (messageId: string) => {
      const message = { messageId, role: 'ROLE_USER', parts: [{ text: 'hi' }] };
      const answer = await served.post('/a2a/counted/message:send', { message }, { 'a2a-version': '1.0' });
      return (await answer.json()).task.id;
    };
    for (const id of ['a\0b', '\ud800', '\ud801', '"quoted"']) expect(await send(id)).toBe(await send(id));
    expect(state.runs).toBe(4);
  });

  it('creates one run if two arrive at once', async () => {
    const { agent: counted, state } = counting();
    const served = await serveApi([counted], { store });
    const runs: Run[] = await Promise.all(
      Array.from({ length: 10 }, async () => (await served.post('/runs', ask('counted'), key('k'))).json()),
    );
    expect(new Set(runs.map(({ run_id }) => run_id)).size).toBe(1);
    expect(state.runs).toBe(1);
    expect((await (await served.get('/runs')).json()).runs).toHaveLength(1);
  });

  it('creates one run if two arrive at once and a busy session rejects', async () => {
    const { agent: counted, state } = counting();
    const served = await serveApi([counted], { store });
    const session_id = '7e57ab1e-0000-4000-8000-000000000001';
    const headers = key('k', { 'if-busy': 'reject' });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => served.post('/runs', ask('counted', 'hi', { session_id }), headers)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    const runs: Run[] = await Promise.all(answers.map((one) => one.json()));
    expect(new Set(runs.map(({ run_id }) => run_id)).size).toBe(1);
    expect(state.runs).toBe(1);
  });

  it('accepts one of several bodies with the same key at once, and refuses the others', async () => {
    const { agent: counted, state } = counting();
    const served = await serveApi([counted], { store });
    const answers = await Promise.all(
      ['a', 'b', 'c'].map((body) => served.post('/runs', ask('counted', body), key('k'))),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 422, 422]);
    expect(state.runs).toBe(1);
  });

  it('is refused with another body, and accepted with the same body in another order of keys', async () => {
    const served = await serveApi([echo], { store });
    await served.post('/runs', { agent_name: 'echo', input: [{ parts: [{ content: 'a', name: 'n' }] }] }, key('k'));
    const other = await served.post('/runs', ask('echo', 'b'), key('k'));
    expect([other.status, (await other.json()).message]).toEqual([
      422,
      expect.stringContaining('came with another body'),
    ]);
    const turned = { input: [{ parts: [{ name: 'n', content: 'a' }] }], agent_name: 'echo' };
    expect((await served.post('/runs', turned, key('k'))).status).toBe(200);
  });

  it('resumes once, and answers with the events that followed', async () => {
    const served = await serveApi([askOnce], { store });
    const { run_id }: Run = await (await served.post('/runs', ask('ask'))).json();
    const body = (content: string) => ({
      mode: 'sync',
      await_resume: { type: 'message', message: { parts: [{ content }] } },
    });
    const [a, b] = await Promise.all(
      [1, 2].map(async () => (await served.post(`/runs/${run_id}`, body('yes'), key('r'))).json()),
    );
    expect([a.status, a]).toEqual(['completed', b]);
    const stream = await served.post(`/runs/${run_id}`, { ...body('yes'), mode: 'stream' }, key('r'));
    expect((await frames(stream))[0]).toMatchObject({ id: 7, event: { type: 'run.in-progress' } });
    expect((await served.post(`/runs/${run_id}`, body('no'), key('r'))).status).toBe(422);
    expect((await served.post(`/runs/${run_id}`, body('yes'), key('other'))).status).toBe(409);
  });

  it('makes a new run where a client has deleted the first one, also with another body, and again just one', async () => {
    const { agent: counted, state } = counting();
    const served = await serveApi([counted], { store });
    const post = async (body: string): Promise<Run> =>
      (await served.post('/runs', ask('counted', body), key('k'))).json();
    const deleted = await post('a');
    expect((await remove(served, `/runs/${deleted.run_id}`)).status).toBe(204);
    const next = await Promise.all([post('a'), post('a')]);
    expect(next).toMatchObject([{ status: 'completed' }, next[0]]);
    expect(next[0]?.run_id).not.toBe(deleted.run_id);
    expect(await post('a')).toEqual(next[0]);
    expect((await remove(served, `/sessions/${next[0]?.session_id}`)).status).toBe(204);
    expect(await post('b')).toMatchObject({ status: 'completed' });
    expect((await served.post('/runs', ask('counted', 'a'), key('k'))).status).toBe(422);
    expect(state.runs).toBe(3);
  });

  it('makes no second run where the server may have removed the first one after its time', async () => {
    const { agent: counted, state } = counting();
    const served = await serveApi([counted], { store, limits: { runTtl: 1, sweepInterval: 1 } });
    const { run_id }: Run = await (await served.post('/runs', ask('counted'), key('k'))).json();
    await expect.poll(async () => (await served.get(`/runs/${run_id}`)).status).toBe(410);
    const again = await served.post('/runs', ask('counted'), key('k'));
    expect([again.status, (await again.json()).message]).toEqual([410, `Run ${run_id} is not kept any more.`]);
    expect(state.runs).toBe(1);
  });

  it('is forgotten after `idempotencyTtl`', async () => {
    const { agent: counted, state } = counting();
    const served = await serveApi([counted], { store, limits: { idempotencyTtl: 1 } });
    await served.post('/runs', ask('counted'), key('k'));
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await served.post('/runs', ask('counted', 'another body'), key('k'))).status).toBe(200);
    expect(state.runs).toBe(2);
  });

  it('is refused if its key is invalid', async () => {
    const served = await serveApi([tokens], { store });
    const response = await served.post('/runs', ask('tokens', '1'), key('x'.repeat(256)));
    expect([response.status, (await response.json()).message]).toEqual([
      422,
      expect.stringContaining('headers.idempotency-key'),
    ]);
  });
});
