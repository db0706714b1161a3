import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { createClient, type Event } from '../../src/client/client.ts';
import type { Run } from '../../src/index.ts';
import { deferred } from '../support/deferred.ts';
import { nginxThere, startNginx } from '../support/nginx.ts';
import { steadyPort } from '../support/ports.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { ask, framesUntil } from '../support/serve.ts';
import { redisPlace } from '../support/servers.ts';

const read = (name: string): string => readFileSync(`examples/deploy/${name}`, 'utf8');
const place = await redisPlace();
afterAll(() => place?.remove());

const tokens = 100;
const project = makeProject({
  'keys.yaml': '[]',
  'agents/count.js': `
    import { defineAgent } from 'rivulet';
    import { concat, interval, map, of, take } from 'rxjs';
    const from = (first) => interval(20).pipe(take(${tokens} - first), map((n) => first + n + ' '));
    export default defineAgent({ name: 'count', description: 'Counts, and emits the process in which it started.' },
      (_, context) => concat(
        context.step('where', () => of(process.pid + ': ')),
        context.step('count', () => from(0), (before) => from(before.length))), { durable: true });`,
});
afterAll(project.remove);

/** A node with the command of the file, and the test's store, address and lease. */
function node(command: string[], environment: Record<string, string> = {}): RivuletProcess {
  const own = { HOST: '127.0.0.1', PORT: '0', RIVULET_STORE: place?.url ?? '' };
  return new RivuletProcess([...command, '--limit', 'lease=4000'], { ...environment, ...own }, project.folder);
}

interface Service {
  readonly image?: string;
  readonly command?: string[];
  readonly environment?: Record<string, string>;
}
const { services }: { services: Record<string, Service> } = parse(read('compose.yaml'), { merge: true });
const members = Object.entries(services).filter(([, { image }]) => image === 'rivulet');

/** nginx.conf with the test's addresses. */
function configured(port: number, urls: readonly string[]): string {
  let text = read('nginx.conf').replace('listen 8080;', `listen 127.0.0.1:${port};`);
  members.forEach(([name], index) => {
    expect(text).toContain(`server ${name}:8000 `);
    text = text.replace(`server ${name}:8000 `, `server ${new URL(urls[index] ?? '').host} `);
  });
  return text;
}

const textIn = (events: readonly Event[]): string =>
  events.map((event) => (event.type === 'message.part' ? (event.part.content ?? '') : '')).join('');

/** Reads a run to its end. `started` resolves to the process that started it, `ended` to all events. */
function readRun(events: AsyncIterable<Event>): { started: Promise<string>; ended: Promise<Event[]> } {
  const { promise: started, resolve: resolveStarted } = deferred<string>();
  const read = async (): Promise<Event[]> => {
    const all: Event[] = [];
    for await (const event of events) {
      all.push(event);
      const process = /^(\d+): $/.exec(textIn([event]))?.[1];
      if (process !== undefined) resolveStarted(process);
    }
    return all;
  };
  return { started, ended: read() };
}

const counted = Array.from({ length: tokens }, (_, n) => `${n} `).join('');

describe.skipIf(place === undefined || !nginxThere())('compose.yaml and nginx.conf', () => {
  const nodes: RivuletProcess[] = [];
  let url = '';
  let stop = async (): Promise<void> => {};

  beforeAll(async () => {
    nodes.push(...members.map(([, { command = [], environment }]) => node(command, environment)));
    const urls = await Promise.all(nodes.map((node) => node.url()));
    const port = await steadyPort();
    stop = await startNginx(configured(port, urls));
    url = `http://127.0.0.1:${port}`;
  });
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.stop('SIGKILL')));
    await stop();
  });

  const post = (body: object, headers = {}): Promise<Response> =>
    fetch(`${url}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });

  it('streams a run, and resumes the stream at any node', async () => {
    const first = await framesUntil(await post(ask('count', '', { mode: 'stream' })), ({ event }) =>
      textIn([event]).startsWith('3 '),
    );
    const [created] = first;
    const run_id = created?.event.type === 'run.created' ? created.event.run.run_id : '';
    const run: Run = await (await fetch(`${url}/runs/${run_id}`)).json();
    expect(run.status).toBe('in-progress');
    const headers = { accept: 'text/event-stream', 'last-event-id': String(first.at(-1)?.id) };
    const rest = await framesUntil(
      await fetch(`${url}/runs/${run_id}/events`, { headers }),
      ({ event }) => event.type === 'run.completed',
    );
    const all = [...first, ...rest];
    expect(all.map(({ id }) => id)).toEqual(all.map((_, index) => index + 1));
    expect(textIn(all.map(({ event }) => event)).replace(/^\d+: /, '')).toBe(counted);
  });

  it('accepts bodies up to Rivulet’s limit', async () => {
    const response = await post(ask('count', 'x'.repeat(9_000_000), { mode: 'async' }));
    expect(response.status).toBe(202);
  });

  for (const [how, signal] of [
    ['is killed', 'SIGKILL'],
    ['is stopped', 'SIGTERM'],
  ] as const) {
    it(`streams the whole run to every reader when its node ${how}`, async () => {
      let breaks = 0;
      const onBreak = (): void => {
        breaks += 1;
      };
      const client = createClient({ url, reconnect: { retries: 100, firstRetries: 100, onBreak } });
      const { run_id } = await client.start('count', 'hi');
      // Two at each node, so that at least two lose their connection.
      const readers = Array.from({ length: 6 }, () => readRun(client.watch(run_id)));
      const [first] = await Promise.all(readers.map(({ started }) => started));
      const ending = nodes.find(({ child }) => child.pid === Number(first));
      ending?.child.kill(signal);
      for (const events of await Promise.all(readers.map(({ ended }) => ended))) {
        expect(textIn(events).replace(/^\d+: /, '')).toBe(counted);
        expect(events.at(-1)?.type).toBe('run.completed');
      }
      expect(await ending?.ended()).toBe(signal === 'SIGTERM' ? 0 : signal);
      // A node that stops lets the step that counts end, and with it the run.
      if (signal === 'SIGKILL') expect(breaks).toBeGreaterThan(0);
    });
  }
});

describe('the files of examples/deploy', () => {
  it('are YAML, and the second compose file changes services of the first', () => {
    const changed = parse(read('compose.postgres.yaml'), { merge: true });
    for (const name of Object.keys(changed.services)) expect(services).toHaveProperty(name);
    for (const [name] of members) expect(changed.services).toHaveProperty(name);
    expect(parseAllDocuments(read('kubernetes.yaml')).flatMap(({ errors }) => errors)).toEqual([]);
  });

  it('start the program of the package', () => {
    const { bin } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(`./${JSON.parse(/^ENTRYPOINT (.*)$/m.exec(read('Dockerfile'))?.[1] ?? '[]')[1]}`).toBe(bin.rivulet);
  });

  it.each(commandLines())('have valid command lines: %s', async (line) => {
    if (place === undefined) return;
    const started = node(line.replace('/etc/rivulet/', '').split(' '));
    onTestFinished(async () => void (await started.stop('SIGKILL')));
    const up = /listening at|executes runs/;
    await expect.poll(() => started.out + started.err).toMatch(up);
    expect(started.err).toBe('');
  });
});

/** The arguments of `rivulet` in all files. */
function commandLines(): string[] {
  const containers = parseAllDocuments(read('kubernetes.yaml')).flatMap((document) => {
    const { kind, spec } = document.toJS();
    return kind === 'Deployment' ? spec.template.spec.containers : [];
  });
  const lines: string[][] = [
    JSON.parse(/^CMD (.*)$/m.exec(read('Dockerfile'))?.[1] ?? '[]'),
    ...members.map(([, { command = [] }]) => command),
    ...containers.map(({ args }: { args: string[] }) => args),
  ];
  return [...new Set(lines.map((line) => line.join(' ')))];
}
