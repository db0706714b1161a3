import { expect, it, onTestFinished } from 'vitest';
import { createRuntime } from '../../src/index.ts';
import { agent, echo } from '../support/agents.ts';

const whose = agent('whose', (_, { principal }) => [principal?.id ?? 'none']);
const caller = agent('caller', (_, context) => context.call('whose', 'hi'));

async function open() {
  const runtime = await createRuntime({ agents: [echo, whose, caller] });
  onTestFinished(() => runtime.close());
  return runtime;
}

it('a runtime makes calls of principals, which see only what they own', async () => {
  const runtime = await open();
  const [alice, bob] = [
    { id: 'alice', scopes: [] },
    { id: 'bob', scopes: [] },
  ].map((one) => runtime.as(one));
  const run = await alice?.sync('whose', 'hi');
  expect(run?.output[0]?.parts[0]?.content).toBe('alice');
  const run_id = run?.run_id ?? '';
  await expect(bob?.get(run_id)).rejects.toMatchObject({ status: 404 });
  expect((await bob?.runs())?.runs).toEqual([]);
  expect((await runtime.get(run_id)).status).toBe('completed');
  expect(await alice?.erase()).toEqual({ runs: 1, sessions: 1 });
  await expect(runtime.get(run_id)).rejects.toMatchObject({ status: 404 });
  await expect(runtime.erase()).rejects.toMatchObject({ data: { reason: 'validation_failed' } });
  expect(await runtime.erase('custom:bob')).toEqual({ runs: 0, sessions: 0 });
});

it('agents that are called by an agent see its principal', async () => {
  const runtime = await open();
  const texts = async (rivulet: Pick<typeof runtime, 'sync'>) =>
    (await rivulet.sync('caller', 'hi')).output[0]?.parts[0];
  expect((await texts(runtime.as({ id: 'alice', scopes: [] })))?.content).toBe('alice');
  expect((await texts(runtime))?.content).toBe('none');
});

it('an agent may ask for scopes, which the agents that call it need not have', async () => {
  const guarded = { ...whose, options: { scopes: ['reports'] } };
  const runtime = await createRuntime({ agents: [guarded, caller] });
  onTestFinished(() => runtime.close());
  const refused = runtime.as({ id: 'alice', scopes: ['runs:write'] }).sync('whose', 'hi');
  await expect(refused).rejects.toMatchObject({ status: 403, data: { reason: 'scope_missing' } });
  expect((await runtime.as({ id: 'bob', scopes: ['reports'] }).sync('whose', 'hi')).status).toBe('completed');
  expect((await runtime.as({ id: 'alice', scopes: [] }).sync('caller', 'hi')).status).toBe('completed');
});

it('readers of a principal end when the runtime closes', async () => {
  const runtime = await createRuntime({
    agents: [echo, agent('never', () => new Promise(() => {}))],
    limits: { shutdownGrace: 0 },
  });
  const alice = runtime.as({ id: 'alice', scopes: [] });
  const { run_id } = await alice.start('never', 'hi');
  const types: string[] = [];
  const reading = (async () => {
    for await (const { type } of alice.watch(run_id, { onFailed: 'end' })) {
      types.push(type);
      if (type === 'run.in-progress') void runtime.close();
    }
  })();
  await reading.catch(() => undefined);
  expect(types).toContain('run.in-progress');
});
