import Fastify, { type FastifyInstance } from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operator } from '../../src/core/principal.ts';
import { tokenIn } from '../../src/core/recognize.ts';
import { httpLimits } from '../../src/http/limits/limits.ts';
import { recordRequests } from '../../src/http/request-log.ts';
import { identifyCallers } from '../../src/http/requests/caller.ts';
import { handleError } from '../../src/http/requests/errors.ts';
import { Responder } from '../../src/http/requests/respond.ts';
import type { ProjectedStream } from '../../src/http/sse/projected-stream.ts';
import { after, type Position, type Projection } from '../../src/http/sse/projection.ts';
import { StreamMonitor } from '../../src/http/sse/stream-monitor.ts';
import { unobserved } from '../../src/http/traffic.ts';
import { LocalRuntime } from '../../src/server/runtime.ts';
import { askOnce, Tap, tokens } from '../support/agents.ts';

/** Two frames for each token, with the number of tokens before it; one for any other event. */
const projection: Projection<number> = {
  start: 0,
  shared: true,
  project(count, line, n, frames) {
    const token = tokenIn(line);
    if (token === undefined) {
      frames.push(`data: ${n}\n\n`);
      return count;
    }
    frames.push(`data: ${n}.${count}\n\n`, `data: ${n}.${token}\n\n`);
    return count + 1;
  },
};

const tap = new Tap();
let runtime: LocalRuntime;
let app: FastifyInstance;
let responder: Responder;
let url: string;
/** What the next request is answered with. */
let asked: Partial<ProjectedStream<number>> = {};

beforeAll(async () => {
  runtime = await LocalRuntime.open({ agents: [tokens, askOnce, tap.agent], store: 'memory:' });
  await runtime.startEngine();
  const limits = httpLimits({});
  const monitor = new StreamMonitor({ ...limits, traffic: unobserved });
  responder = new Responder({ ...limits, monitor, traffic: unobserved, retry: 1 });
  app = Fastify();
  recordRequests(app, { traffic: unobserved, lines: undefined });
  identifyCallers(app, runtime.engine, false);
  await app.register(FastifySSEPlugin, { retryDelay: false });
  app.setErrorHandler(handleError);
  const access = runtime.engine.as(operator);
  app.get<{ Params: { run_id: string } }>('/:run_id', (request, reply) =>
    responder.project(reply, access, request.params.run_id, { projection, ...asked }),
  );
  url = await app.listen({ port: 0, host: '127.0.0.1' });
});
afterAll(async () => {
  await app.close();
  await runtime.close();
});

/** The frames of a stream, without the line `retry`. */
async function read(run_id: string, options: Partial<ProjectedStream<number>> = {}): Promise<string[]> {
  asked = options;
  const response = await fetch(`${url}/${run_id}`);
  expect(response.status).toBe(200);
  return framesIn(await response.text());
}

const framesIn = (text: string): string[] =>
  text
    .replace(/^retry: \d+\n/, '')
    .split(/(?<=\n\n)/)
    .filter(Boolean);

describe('a projected stream', () => {
  it('goes on exactly after any frame of a run, live or stored', async () => {
    const { run_id } = await runtime.sync('tokens', '5');
    const whole = await read(run_id);
    expect(whole.slice(3, 7)).toEqual(['data: 4.0\n\n', 'data: 4."t0 "\n\n', 'data: 5.1\n\n', 'data: 5."t1 "\n\n']);
    for (const [index, frame] of whole.entries()) {
      const event = Number(/\d+/.exec(frame)?.[0]);
      const before = whole.slice(0, index).filter((one) => Number(/\d+/.exec(one)?.[0]) === event).length;
      expect(await read(run_id, { from: { event, frames: before } })).toEqual(whole.slice(index));
    }
  });

  it('begins with frames that its protocol wants before the rest, made from the state there', async () => {
    const { run_id } = await runtime.sync('tokens', '3');
    const lead = (count: number): string[] => [`data: after ${count} tokens\n\n`];
    expect((await read(run_id, { from: after(5), lead })).slice(0, 2)).toEqual([
      'data: after 2 tokens\n\n',
      'data: 6.2\n\n',
    ]);
  });

  it('is complete at a question, and at its end; then it goes on with the reply', async () => {
    const run = await runtime.sync('ask', 'hi');
    const asking = await read(run.run_id);
    const last = Number(/\d+/.exec(asking.at(-1) ?? '')?.[0]);
    expect(await read(run.run_id, { from: after(last) })).toEqual([]);
    const from: Position = after(last);
    await runtime.resume(run.run_id, 'yes');
    const rest = await read(run.run_id, { from });
    expect([...asking, ...rest]).toEqual(await read(run.run_id, { until: 'final' }));
    expect(await read(run.run_id)).toEqual(asking);
  });

  it('refuses a position behind the end of the log with 400', async () => {
    const { run_id } = await runtime.sync('tokens', '1');
    asked = { from: after(100) };
    expect((await fetch(`${url}/${run_id}`)).status).toBe(400);
  });

  it('never ends cleanly before its run: the connection breaks, or the last frame says why', async () => {
    const started = tap.started();
    const { run_id } = await runtime.start('tap', 'hi');
    await started;
    const open = async (options: Partial<ProjectedStream<number>>): Promise<Response> => {
      asked = options;
      return fetch(`${url}/${run_id}`);
    };
    const broken = await open({});
    const said = await open({ interrupted: ({ data }) => `data: ${data?.reason}\n\n` });
    tap.push('a');
    responder.stop();
    await expect(broken.text()).rejects.toThrow();
    expect(framesIn(await said.text()).at(-1)).toBe('data: stopping\n\n');
    tap.complete();
  });
});
