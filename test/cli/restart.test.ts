import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import type { Event, Run } from '../../src/index.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { ask, type Framed, frames, framesUntil, parseFrames, textOf, types } from '../support/serve.ts';

const head = `
import { appendFileSync, existsSync, readFileSync, watch } from 'node:fs';
import { defineAgent } from 'rivulet';
import { concat, defer, ignoreElements, map, Observable, of } from 'rxjs';

/** Completes when there is a file of that name, which the test makes. */
const gate = (name) => new Observable((subscriber) => {
  const look = () => { if (existsSync(name)) { subscriber.next(name); subscriber.complete(); } };
  const watching = watch('.', look);
  look();
  return () => watching.close();
});
`;

const agentText = (name: string, run: string, durable: boolean): string =>
  `${head}\nexport default defineAgent({ name: '${name}', description: 'A ${name}.' }, ${run}, { durable: ${durable} });\n`;

/** A project whose server is started again and again, on the same file. */
class Server {
  readonly folder: string;
  #process: RivuletProcess | undefined;
  url = '';

  constructor({ onTestFinished }: TestContext, name: string, run: string, durable: boolean) {
    const { folder, remove } = makeProject({
      [`agents/${name}.js`]: agentText(name, run, durable),
      'agents/echo.js': agentText('echo', '(input) => input', false),
    });
    this.folder = folder;
    onTestFinished(async () => {
      await this.#process?.stop('SIGKILL');
      remove();
    });
  }

  get process(): RivuletProcess {
    if (this.#process === undefined) throw new Error('the server was not started');
    return this.#process;
  }

  launch(...args: string[]): RivuletProcess {
    this.#process = new RivuletProcess(['serve', '--port', '0', ...args], {}, this.folder);
    return this.#process;
  }

  async start(...args: string[]): Promise<void> {
    this.url = await this.launch(...args).url();
  }

  post(path: string, body: object): Promise<Response> {
    const headers = { 'content-type': 'application/json' };
    return fetch(`${this.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  async create(agent: string): Promise<Run> {
    return (await this.post('/runs', ask(agent, 'hi', { mode: 'async' }))).json();
  }

  async get<T>(path: string): Promise<T> {
    return (await fetch(`${this.url}${path}`)).json();
  }

  /** What an EventSource does: opens the stream after the last event that it has. */
  tail(run_id: string, after?: number): Promise<Response> {
    const headers = { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': String(after) }) };
    return fetch(`${this.url}/runs/${run_id}/events`, { headers });
  }

  /** Follows the run until it says a text. */
  async said(run_id: string, text: string): Promise<void> {
    await framesUntil(
      await this.tail(run_id),
      ({ event }) => event.type === 'message.part' && event.part.content === text,
    );
  }

  /** Follows the run to its end. */
  async finished(run_id: string): Promise<Run> {
    await (await this.tail(run_id)).text();
    return this.get(`/runs/${run_id}`);
  }

  /** Resolves, once the server has begun to stop, to what it answers a new run then. */
  async refused(): Promise<Response> {
    for (;;) {
      const answer = await this.post('/runs', ask('echo'));
      if (answer.status !== 200) return answer;
      await answer.text();
    }
  }

  write(name: string, text = ''): void {
    writeFileSync(join(this.folder, name), text);
  }

  lines(name: string): string[] {
    return readFileSync(join(this.folder, name), 'utf8').split('\n').filter(Boolean);
  }
}

const approve = `(input, context) => concat(
  of('I can do that. '),
  context.await('Shall I?').pipe(map(({ message }) => 'You said ' + message.parts[0].content + '.')))`;

// Eleven starts of a process, on a machine that is busy with the other tests, take their time.
describe.concurrent('a server that is stopped and started again', { timeout: 120_000 }, () => {
  it('is deployed in the middle of an approval, and neither the run nor its reader notices', async (t) => {
    const server = new Server(t, 'approve', approve, true);
    await server.start();
    const asked = await frames(await server.post('/runs', ask('approve', 'hi', { mode: 'stream' })));
    expect(asked.at(-1)?.event.type).toBe('run.awaiting');
    const [first] = asked;
    const { run_id } = first !== undefined && 'run' in first.event ? first.event.run : { run_id: '' };

    const tail = (await server.tail(run_id)).text();
    expect(await server.process.stop()).toBe(0);
    // A stream that is cut instead of ended would reject.
    const before = parseFrames(await tail);

    await server.start();
    const [rest] = await Promise.all([
      server.tail(run_id, before.at(-1)?.id).then(frames),
      server.post(`/runs/${run_id}`, {
        mode: 'sync',
        await_resume: { type: 'message', message: { parts: [{ content: 'yes' }] } },
      }),
    ]);
    const run: Run = await server.get(`/runs/${run_id}`);
    expect(run.status).toBe('completed');
    expect(textOf(run)).toBe('I can do that. You said yes.');
    const joined: Framed[] = [...before, ...rest];
    const { events } = await server.get<{ events: Event[] }>(`/runs/${run_id}/events`);
    expect(joined).toEqual(events.map((event, index) => ({ id: index + 1, event })));
    expect(types(events).filter((type) => type === 'run.in-progress')).toHaveLength(2);
  });

  it('does the work of a step once, over ten restarts', async (t) => {
    const server = new Server(
      t,
      'worker',
      `(input, context) => concat(...Array.from({ length: 11 }, (_, i) => concat(
        context.step('work', () => defer(() => { appendFileSync('done', i + '\\n'); return of('did ' + i); })),
        context.step('hold', () => gate('go-' + i)).pipe(ignoreElements()))))`,
      true,
    );
    const limit = ['--limit', 'attempts=100'];
    await server.start(...limit);
    const { run_id } = await server.create('worker');
    for (let restart = 0; restart < 10; restart += 1) {
      await server.said(run_id, `did ${restart}`);
      const signal = restart % 2 === 0 ? 'SIGKILL' : 'SIGTERM';
      expect(await server.process.stop(signal)).toBe(signal === 'SIGTERM' ? 0 : 'SIGKILL');
      await server.start(...limit);
      server.write(`go-${restart}`);
    }
    server.write('go-10');
    const run = await server.finished(run_id);
    const numbers = Array.from({ length: 11 }, (_, index) => String(index));
    expect(textOf(run)).toBe(numbers.map((number) => `did ${number}`).join(''));
    expect(run.status).toBe('completed');
    expect(server.lines('done')).toEqual(numbers);
  });

  it('gives up on a run that ends its process every time, after three attempts', async (t) => {
    const server = new Server(t, 'killer', "() => { appendFileSync('entered', 'x\\n'); process.exit(7); }", true);
    await server.start();
    // It may be gone before it answers.
    await server.create('killer').catch(() => undefined);
    expect(await server.process.ended()).toBe(7);
    for (let attempt = 1; attempt <= 3; attempt += 1) expect(await server.launch().ended()).toBe(7);

    await server.start();
    const { runs } = await server.get<{ runs: Run[] }>('/runs');
    expect(runs).toMatchObject([
      { status: 'failed', error: { code: 'server_error', data: { reason: 'recovery_exhausted' } } },
    ]);
    expect(runs[0]?.error?.message).toContain('re-entered 3 times');
    // The first time, and three times again.
    expect(server.lines('entered')).toHaveLength(4);
  });

  it('fails a run that does not say again what it said, and names the place and both texts', async (t) => {
    const server = new Server(
      t,
      'fickle',
      `(input, context) => concat(
        of('always. '), defer(() => of(readFileSync('mood', 'utf8'))), context.step('hold', () => gate('go')))`,
      true,
    );
    server.write('mood', 'sunny');
    await server.start();
    const { run_id } = await server.create('fickle');
    await server.said(run_id, 'sunny');
    await server.process.stop('SIGKILL');
    server.write('mood', 'rainy');
    await server.start();
    const run = await server.finished(run_id);
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', data: { reason: 'replay_diverged' } },
    });
    // Created, in progress, the message, 'always. ', and then the mood.
    expect(run.error?.message).toMatch(/at event 5, expected .*"sunny".*, got .*"rainy"/);
    expect(textOf(run)).toBe('always. sunny');
  });

  it('lets a pinned run finish when it is asked to stop, and takes no new ones meanwhile', async (t) => {
    const server = new Server(
      t,
      'slow',
      "() => concat(of('begun, '), gate('go').pipe(ignoreElements()), of('done'))",
      false,
    );
    await server.start();
    const { run_id } = await server.create('slow');
    const tail = await server.tail(run_id);
    server.process.child.kill('SIGTERM');
    const refused = await server.refused();
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    expect((await refused.json()).message).toContain('stopping');
    expect(existsSync(join(server.folder, 'go'))).toBe(false);
    server.write('go');
    const seen = await frames(tail);
    expect(seen.at(-1)?.event.type).toBe('run.completed');
    expect(await server.process.ended()).toBe(0);

    await server.start();
    const run: Run = await server.get(`/runs/${run_id}`);
    expect([run.status, textOf(run)]).toEqual(['completed', 'begun, done']);
  });

  it('ends at once when it is told to stop a second time', async (t) => {
    const server = new Server(t, 'slow', "() => gate('never')", false);
    await server.start('--limit', 'stopTime=60000');
    const { run_id } = await server.create('slow');
    server.process.child.kill('SIGTERM');
    expect((await server.refused()).status).toBe(503);
    const told = performance.now();
    expect(await server.process.stop('SIGTERM')).toBe(1);
    expect(performance.now() - told).toBeLessThan(5_000);

    await server.start();
    expect(await server.get(`/runs/${run_id}`)).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', data: { reason: 'run_interrupted' } },
    });
  });
});
