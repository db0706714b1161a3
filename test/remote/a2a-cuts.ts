import { createServer } from 'node:http';
import type { Run } from 'rivulet';
import { remoteAgent } from 'rivulet/remote';
import { type RanAgent, runAgent } from 'rivulet/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Binding, bindings } from '../protocols/a2a/clients.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { listenOn } from '../support/ports.ts';
import { listen, type Served } from '../support/serve.ts';
import { agents } from './remote-agents.ts';

let there: Served;

/** The card of an agent, with one binding at the address of a proxy. */
async function cardServer(name: string, binding: Binding, url: string): Promise<string> {
  const card = await (await there.get(`/a2a/${name}/.well-known/agent-card.json`)).json();
  const supportedInterfaces = [{ url: `${url}/a2a/${name}/`, protocolBinding: binding, protocolVersion: '1.0' }];
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...card, supportedInterfaces }));
  });
  onTestFinished(() => void server.close().closeAllConnections());
  return `${await listenOn(server)}/`;
}

const runsThere = async (): Promise<Run[]> => (await (await there.get('/runs?limit=100')).json()).runs;

interface Cut extends RanAgent {
  readonly cuts: number;
}

/** Runs an agent of the server through a proxy that cuts its first connections after so many bytes. */
async function runCut(
  name: string,
  binding: Binding,
  bytes: readonly number[],
  { input = 'Tea', ...options }: { input?: string; answers?: string[]; signal?: AbortSignal } = {},
): Promise<Cut> {
  const proxy = await CuttingProxy.open(there.url, bytes);
  onTestFinished(() => proxy.close());
  const url = await cardServer(name, binding, proxy.url);
  const agent = await remoteAgent(url, { allowNetworks: ['127.0.0.1'], delay: 1, retries: 12 });
  const before = (await runsThere()).length;
  const ran = await runAgent(agent, input, options);
  expect(await runsThere()).toHaveLength(before + 1);
  return { ...ran, cuts: proxy.cuts };
}

/** Plan number `step` of eight: connections that are cut after ever more bytes, from some of the first frames to none. */
const planOf = (step: number): number[] => Array.from({ length: 6 }, (_, n) => 40 + 190 * step + 310 * n);

const without = ({ run: { error, output }, questions }: RanAgent): object => ({
  error,
  messages: output.map(({ role, parts }) => ({ role, parts })),
  questions: questions.map(({ message, schema }) => ({ parts: message.parts, schema })),
});

/** The tests of a remote agent whose streams are cut, by the plans of these numbers. */
export function describeCuts(steps: readonly number[]): void {
  beforeAll(async () => {
    there = await listen(agents);
  });
  afterAll(() => there.app.close());

  describe.each(bindings)('an agent of a Rivulet server, over A2A with %s', (binding) => {
    it.each([
      ['everything', 'parts of all kinds', {}],
      ['counting', 'tokens', { input: '40' }],
      ['asking', 'questions', { answers: ['3', 'Later'] }],
      ['failing', 'an error with a code and data', {}],
    ])('%s: gives %s once and from one remote run, however its streams are cut', async (name, _, options) => {
      const whole = await runCut(name, binding, [], options);
      const local = agents.find(({ manifest }) => manifest.name === name);
      if (local === undefined) throw new Error(`there is no agent ${name}`);
      const { input = 'Tea', ...answers }: { input?: string; answers?: string[] } = options;
      expect(whole.parts).toEqual((await runAgent(local, input, answers)).parts);
      let cuts = 0;
      for (const step of steps) {
        const cut = await runCut(name, binding, planOf(step), options);
        expect(without(cut)).toEqual(without(whole));
        cuts += cut.cuts;
      }
      expect(cuts).toBeGreaterThan(steps.length);
    });

    it.each([
      ['in the middle of', [900]],
      ['before the first frame of', [300]],
    ])('endless: is cancelled on its server after a cut %s its stream, with cuts of the cancel', async (_, bytes) => {
      const abort = new AbortController();
      const running = runCut('endless', binding, [...bytes, 10, 20], { signal: abort.signal });
      await expect
        .poll(async () => (await runsThere())[0])
        .toMatchObject({ agent_name: 'endless', status: 'in-progress' });
      abort.abort();
      expect((await running).run.status).toBe('cancelled');
      await expect.poll(async () => (await runsThere())[0]?.status).toBe('cancelled');
    });
  });
}
