import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext } from 'vitest';
import type { Event, Run } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { ask, framesUntil } from '../support/serve.ts';

const head = `
import { appendFileSync, existsSync, readFileSync, watch } from 'node:fs';
import { defineAgent } from 'rivulet';
import { concat, defer, ignoreElements, map, merge, Observable, of } from 'rxjs';

/** Completes when the test has created a file of that name. */
const gate = (name) => new Observable((subscriber) => {
  const look = () => { if (existsSync(name)) { subscriber.next(name); subscriber.complete(); } };
  const watching = watch('.', look);
  look();
  return () => watching.close();
});
`;

const agentText = (name: string, run: string, durable: boolean): string =>
  `${head}\nexport default defineAgent({ name: '${name}', description: 'A ${name}.' }, ${run}, { durable: ${durable} });\n`;

/** A project whose server is restarted on the same SQLite file. */
export class RestartedServer {
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

  /** Replaces the agent, as a deploy does. */
  deploy(name: string, run: string): void {
    this.write(`agents/${name}.js`, agentText(name, run, true));
  }

  launch(...args: string[]): RivuletProcess {
    this.#process = new RivuletProcess(['serve', '--port', '0', ...args], {}, this.folder);
    return this.#process;
  }

  async start(...args: string[]): Promise<void> {
    this.url = await this.launch(...args).url();
  }

  /** Runs a command of a client. */
  async rivulet(...args: string[]): Promise<{ code: number | string | null; out: string; err: string }> {
    const client = new RivuletProcess([...args, '--url', this.url], {}, this.folder);
    const code = await client.ended();
    return { code, out: client.out, err: client.err };
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

  /** Opens the stream after the last event received, as an EventSource does. */
  tail(run_id: string, after?: number): Promise<Response> {
    const headers = { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': String(after) }) };
    return fetch(`${this.url}/runs/${run_id}/events`, { headers });
  }

  /** Follows the run until it emits a text. */
  async emitted(run_id: string, text: string): Promise<void> {
    await framesUntil(
      await this.tail(run_id),
      ({ event }) => event.type === 'message.part' && event.part.content === text,
    );
  }

  /** Follows the run until it is final. */
  async finished(run_id: string): Promise<Run> {
    await (await this.tail(run_id)).text();
    return this.get(`/runs/${run_id}`);
  }

  async events(run_id: string): Promise<Event[]> {
    return (await this.get<{ events: Event[] }>(`/runs/${run_id}/events`)).events;
  }

  /** Waits until the run is parked. */
  async parked(run_id: string): Promise<Run> {
    return eventually(async () => {
      const run = await this.get<Run>(`/runs/${run_id}`);
      expect(run).toHaveProperty('parked');
      return run;
    });
  }

  /** Resolves to the response to a new run when the server has begun to stop. */
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
    const path = join(this.folder, name);
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
  }

  /** Resolves when a file has so many lines. */
  async hasLines(name: string, count: number): Promise<void> {
    await eventually(() => expect(this.lines(name).length).toBeGreaterThanOrEqual(count));
  }
}
