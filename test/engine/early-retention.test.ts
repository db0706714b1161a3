import { map } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import { createRuntime, defineAgent } from '../../src/index.ts';
import { echo } from '../support/agents.ts';
import { ask, finished, serveApi } from '../support/serve.ts';

const brief = defineAgent({ name: 'brief', description: 'Is kept for no time.' }, (input) => input, { run_ttl: 0 });
const asking = defineAgent(
  { name: 'asking', description: 'Asks.' },
  (_, context) => context.await('Well?').pipe(map(() => 'Done.')),
  {
    run_ttl: 0,
  },
);

it.each(['memory:', 'sqlite::memory:'])(
  'removes final runs of an agent after its own time, with their messages, on %s',
  async (store) => {
    const served = await serveApi([brief, asking, echo], { store, limits: { sweepInterval: 5 } });
    const run = async (agent: string, session_id?: string) =>
      (await served.post('/runs', ask(agent, 'hi', { mode: 'async', ...(session_id && { session_id }) }))).json();
    const kept = await run('echo');
    await finished(served, kept.run_id);
    const awaiting = await run('asking');
    const gone = await Promise.all(Array.from({ length: 150 }, () => run('brief', kept.session_id)));
    const status = async (id: string): Promise<number> => (await served.get(`/runs/${id}`)).status;
    const left = async () => (await (await served.get('/runs?agent_name=brief')).json()).runs;
    await expect.poll(left).toEqual([]);
    expect(await Promise.all(gone.map(({ run_id }) => status(run_id)))).toEqual(gone.map(() => 404));
    expect(await status(kept.run_id)).toBe(200);
    // A run that is not final stays, however old it is.
    expect(await status(awaiting.run_id)).toBe(200);
    const { history } = await (await served.get(`/sessions/${kept.session_id}`)).json();
    expect(history).toHaveLength(2);
  },
);

it.each(['memory:', 'sqlite::memory:'])(
  'removes final runs of an owner after its own time, and those of no other, on %s',
  async (store) => {
    const runTtlByOwner = { 'custom:alice': 0 };
    const runtime = await createRuntime({ agents: [echo], store, runTtlByOwner, limits: { sweepInterval: 5 } });
    onTestFinished(() => runtime.close());
    const [alice, bob] = [runtime.as({ id: 'alice', scopes: [] }), runtime.as({ id: 'bob', scopes: [] })];
    const kept = await bob.sync('echo', 'hi');
    for (let runs = 0; runs < 3; runs += 1) await alice.sync('echo', 'hi');
    await expect.poll(async () => (await alice.runs()).runs).toEqual([]);
    expect((await bob.get(kept.run_id)).status).toBe('completed');
  },
);

it('refuses a time that is none', () => {
  expect(() => defineAgent({ name: 'a', description: 'A.' }, (input) => input, { run_ttl: -1 })).toThrow(
    'options.run_ttl: expected milliseconds, at least 0; got -1',
  );
});
