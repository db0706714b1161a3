import { concatMap, from, map, merge, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ReconnectingAgent } from '../../../examples/ag-ui/reconnecting-agent.ts';
import { citation, file, json, progress, textOf } from '../../../src/index.ts';
import { agent, askOnce, echo, Tap } from '../../support/agents.ts';
import { nodes } from '../../support/nodes.ts';
import { type Served, serve } from '../../support/serve.ts';
import { generations } from './clients.ts';

const posted = (runId: string, text = 'hi', more: object = {}) => ({
  threadId: 'a thread',
  runId,
  messages: [{ id: 'u1', role: 'user', content: text }],
  ...more,
});

interface Frame {
  readonly id: string | undefined;
  readonly event: { readonly type: string; readonly [key: string]: unknown };
}

const framesIn = (text: string): Frame[] =>
  text
    .split('\n\n')
    .filter((frame) => frame.includes('data: '))
    .map((frame) => ({
      id: /^id: (.+)$/m.exec(frame)?.[1],
      event: JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? 'null'),
    }));

const typesIn = (frames: readonly Frame[]): string[] => frames.map(({ event }) => event.type);

/** Reads a body until it has a text. Returns what came so far, and leaves. */
async function until(response: Response, wanted: string): Promise<string> {
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes(wanted)) return text;
  }
  throw new Error(`the stream ended without ${wanted}: ${text}`);
}

const said = (own: ReconnectingAgent): unknown[] => own.messages.map(({ role, content }) => [role, content]);

describe('a page that reloads in the middle of a run', () => {
  it('gets the state, the messages and the rest, by the run id that it has chosen', async () => {
    const tap = new Tap();
    const served = await serve([tap.agent]);
    const first = await served.post('/ag-ui/tap', posted('run-1', 'hi', { state: { page: 1 } }));
    await tap.started();
    tap.push('one ');
    tap.push('two ');
    await until(first, 'two ');
    const reloaded = new ReconnectingAgent({ url: `${served.url}/ag-ui/tap`, threadId: 'a thread' });
    const read = reloaded.connectAgent({ runId: 'run-1' });
    await expect
      .poll(() => said(reloaded))
      .toEqual([
        ['user', 'hi'],
        ['assistant', 'one two '],
      ]);
    tap.push('three');
    tap.complete();
    await read;
    expect([said(reloaded), reloaded.state]).toEqual([
      [
        ['user', 'hi'],
        ['assistant', 'one two three'],
      ],
      { page: 1 },
    ]);
    expect(reloaded.messages[0]?.id).toBe('u1');
  });

  it('gets the question of a run that awaits, and the end of one that has ended', async () => {
    const served = await serve([askOnce]);
    const first = await served.post('/ag-ui/ask', posted('run-1'));
    const run_id = first.headers.get('run-id') ?? '';
    await first.text();
    const url = `${served.url}/ag-ui/ask`;
    const asked = new ReconnectingAgent({ url, threadId: 'a thread' });
    await asked.connectAgent({ runId: 'run-1' });
    const [interrupt] = asked.pendingInterrupts;
    expect(interrupt).toMatchObject({ reason: 'input_required', message: 'Well?' });
    await asked.runAgent({
      runId: 'run-2',
      resume: [{ interruptId: interrupt?.id ?? '', status: 'resolved', payload: 'so' }],
    });
    for (const runId of ['run-2', run_id]) {
      const late = new ReconnectingAgent({ url, threadId: 'a thread' });
      await late.connectAgent({ runId });
      expect(said(late)).toEqual([
        ['user', 'hi'],
        ['assistant', 'before. '],
        ['assistant', 'You said so.'],
      ]);
      expect(late.pendingInterrupts).toEqual([]);
    }
    // The first run of the client ended with its question.
    const earlier = new ReconnectingAgent({ url, threadId: 'a thread' });
    await earlier.connectAgent({ runId: 'run-1' });
    expect(earlier.pendingInterrupts).toHaveLength(1);
  });

  it('reads a run that was made in another protocol', async () => {
    const served = await serve([echo]);
    const run = await (
      await served.post('/runs', { agent_name: 'echo', input: [{ parts: [{ content: 'hi' }] }] })
    ).json();
    const reader = new ReconnectingAgent({ url: `${served.url}/ag-ui/echo` });
    await reader.connectAgent({ runId: run.run_id });
    expect(said(reader)).toEqual([
      ['user', 'hi'],
      ['assistant', 'hi'],
    ]);
  });
});

describe('a page that reloads', () => {
  it('gets the files, data, citations and events of the agent that came before, and of a later run as well', async () => {
    const shows = agent('shows', async function* (_, context) {
      yield file('a.png', new Uint8Array([1, 2]), 'image/png');
      yield 'Look ';
      yield citation({ url: 'https://example.com/', start_index: 0, end_index: 4 });
      yield json({ answer: 42 });
      yield progress('Half of it', { done: 1, total: 2 });
      yield `at ${textOf((await context.await('Where?')).message)}.`;
    });
    const served = await serve([shows]);
    const url = `${served.url}/ag-ui/shows`;
    const seen = (into: object[]) => ({
      onCustomEvent: ({ event: { name, value } }: { event: { name: string; value: unknown } }) =>
        void into.push({ name, value }),
    });
    const [stayed, asked, ended]: [object[], object[], object[]] = [[], [], []];
    const page = new ReconnectingAgent({ url, threadId: 'a thread' });
    await page.runAgent({ runId: 'run-1' }, seen(stayed));
    expect(stayed.map((one) => Reflect.get(one, 'name'))).toEqual([
      'rivulet.part',
      'rivulet.citation',
      'rivulet.part',
      'progress',
    ]);
    await new ReconnectingAgent({ url, threadId: 'a thread' }).connectAgent({ runId: 'run-1' }, seen(asked));
    expect(asked).toEqual(stayed);
    const resume = [{ interruptId: page.pendingInterrupts[0]?.id ?? '', status: 'resolved', payload: 'it' } as const];
    await page.runAgent({ runId: 'run-2', resume }, seen(stayed));
    await new ReconnectingAgent({ url, threadId: 'a thread' }).connectAgent({ runId: 'run-2' }, seen(ended));
    expect(ended).toEqual(stayed);
  });

  it('runs no tool again whose result it has sent', async () => {
    const browses = agent('browses', async function* (_, context) {
      const { message } = await context.await('the page', { tool: { name: 'browse', input: { n: 1 } } });
      yield `It says ${textOf(message)}.`;
    });
    const served = await serve([browses]);
    const tools = [{ name: 'browse', description: 'opens a page', parameters: {} }];
    const names = async (runId: string): Promise<unknown[]> => {
      const frames = framesIn(await (await served.get(`/ag-ui/browses/runs/${runId}`)).text());
      return frames.flatMap(({ event }) => (event.type === 'CUSTOM' ? [event.name] : []));
    };
    const first = framesIn(await (await served.post('/ag-ui/browses', posted('run-1', 'hi', { tools }))).text());
    expect(await names('run-1')).toEqual(['tool-input-available']);
    const id = first.find(({ event }) => event.type === 'TOOL_CALL_START')?.event.toolCallId;
    const messages = [
      { id: 'u1', role: 'user', content: 'hi' },
      {
        id: 'a1',
        role: 'assistant',
        toolCalls: [{ id, type: 'function', function: { name: 'browse', arguments: '{}' } }],
      },
      { id: 't1', role: 'tool', toolCallId: id, content: 'yes' },
    ];
    await (await served.post('/ag-ui/browses', { threadId: 'a thread', runId: 'run-2', tools, messages })).text();
    expect(await names('run-2')).toEqual([]);
  });

  it('gets the files that a user has sent in another protocol', async () => {
    const served = await serve([echo]);
    const image = { content_type: 'image/png', content_encoding: 'base64', content: 'AQI=', name: 'a.png' };
    const page = { content_type: 'text/html', content_url: 'https://example.com/' };
    const parts = [{ content: 'Look' }, image, page, { content_type: 'application/json', content: '{"a":1}' }];
    const run = await (await served.post('/runs', { agent_name: 'echo', input: [{ parts }] })).json();
    const reader = new ReconnectingAgent({ url: `${served.url}/ag-ui/echo` });
    await reader.connectAgent({ runId: run.run_id });
    expect(reader.messages[0]?.content).toEqual([
      { type: 'text', text: 'Look' },
      {
        type: 'image',
        source: { type: 'data', value: 'AQI=', mimeType: 'image/png' },
        metadata: { filename: 'a.png' },
      },
      { type: 'document', source: { type: 'url', value: 'https://example.com/', mimeType: 'text/html' } },
      { type: 'text', text: '{"a":1}' },
    ]);
  });
});

describe('a reader with a cursor', () => {
  it('gets the rest after frames that open the run and its message again', async () => {
    const tap = new Tap();
    const served = await serve([tap.agent]);
    const first = await served.post('/ag-ui/tap', posted('run-1'));
    await tap.started();
    tap.push('one ');
    const cursor = framesIn(await until(first, 'one ')).at(-1)?.id ?? '';
    tap.push('two');
    tap.complete();
    const rest = await served.get('/ag-ui/tap/runs/run-1', { 'last-event-id': cursor });
    const frames = framesIn(await rest.text());
    expect(typesIn(frames)).toEqual([
      'RUN_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_FINISHED',
    ]);
    expect(frames[2]?.event.delta).toBe('two');
    expect(frames[0]?.event).toMatchObject({ threadId: 'a thread', runId: 'run-1' });
  });

  it('that has the end gets the last frame again', async () => {
    const served = await serve([echo]);
    const frames = framesIn(await (await served.post('/ag-ui/echo', posted('run-1'))).text());
    const last = { 'last-event-id': frames.at(-1)?.id ?? '' };
    const again = framesIn(await (await served.get('/ag-ui/echo/runs/run-1', last)).text());
    expect(typesIn(again)).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    const joined = framesIn(await (await served.get('/ag-ui/echo?runId=run-1', last)).text());
    expect(joined).toEqual(frames.slice(-1));
  });
});

describe('a client that repeats its request', () => {
  it('gets the run that it has made, once', async () => {
    const served = await serve([echo]);
    const [one, two] = await Promise.all([
      served.post('/ag-ui/echo', posted('run-1')),
      served.post('/ag-ui/echo', posted('run-1')),
    ]);
    expect(one.headers.get('run-id')).toBe(two.headers.get('run-id'));
    expect(framesIn(await one.text())).toEqual(framesIn(await two.text()));
  });

  it('with the id of the last frame gets exactly the rest, after any frame', async () => {
    const served = await serve([askOnce]);
    const send = (headers = {}) => served.post('/ag-ui/ask', posted('run-1'), headers);
    const all = framesIn(await (await send()).text());
    for (const [index, { id = '' }] of all.entries()) {
      const rest = framesIn(await (await send({ 'last-event-id': id, 'x-run-id': 'run-1' })).text());
      expect(rest).toEqual(index + 1 === all.length ? all.slice(-1) : all.slice(index + 1));
      const url = '/ag-ui/ask?offset=-1&runId=run-1';
      expect(framesIn(await (await served.get(url, { 'last-event-id': id })).text())).toEqual(rest);
    }
    expect(framesIn(await (await served.get('/ag-ui/ask?offset=-1&runId=run-1')).text())).toEqual(all);
  });

  it('reads its own run, although the agent has gone on since', async () => {
    const busy = agent('busy', (_, context) =>
      merge(
        context.await('Well?').pipe(map(() => 'Thanks.')),
        timer(0).pipe(concatMap(() => from(['still ', 'here']))),
      ),
    );
    const served = await serve([busy]);
    const all = framesIn(await (await served.post('/ag-ui/busy', posted('run-1'))).text());
    const interruptId = /"interrupts":\[\{"id":"([^"]+)"/.exec(JSON.stringify(all))?.[1];
    const resume = [{ interruptId, status: 'resolved', payload: 'yes' }];
    const next = framesIn(await (await served.post('/ag-ui/busy', posted('run-2', 'hi', { resume }))).text());
    expect(typesIn(next).filter((type) => /^RUN/.test(type))).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    const text = next.map(({ event }) => event.delta ?? '').join('');
    expect(text).toContain('Thanks.');
    // What it said while it awaited is a part of the next run of the client, if it was not one of the first.
    expect(all.map(({ event }) => event.delta ?? '').join('') + text).toContain('still here');
    expect(framesIn(await (await served.get('/ag-ui/busy?runId=run-1')).text())).toEqual(all);
    expect(framesIn(await (await served.get('/ag-ui/busy?runId=run-2')).text())).toEqual(next);
  });
});

it('an agent that is aborted stops to read, and its run goes on', async () => {
  const tap = new Tap();
  const served = await serve([tap.agent]);
  const own = new ReconnectingAgent({ url: `${served.url}/ag-ui/tap` }, 1);
  const run = own.runAgent({ runId: 'run-1' });
  await tap.started();
  tap.push('one ');
  await expect.poll(() => own.messages.length).toBe(1);
  own.abortRun();
  await run;
  tap.push('two');
  tap.complete();
  const late = new ReconnectingAgent({ url: `${served.url}/ag-ui/tap` });
  await late.connectAgent({ runId: 'run-1' });
  expect(said(late)).toEqual([['assistant', 'one two']]);
});

describe('a server that stops', () => {
  const open = async (served: Served, tap: Tap, headers = {}): Promise<Response> => {
    const response = await served.post('/ag-ui/tap', posted('run-1'), headers);
    await tap.started();
    return response;
  };

  it('ends a stream with RUN_ERROR, because a client would take a clean end for success', async () => {
    const tap = new Tap();
    const served = await serve([{ ...tap.agent, options: { durable: true } }]);
    const response = await open(served, tap);
    const text = response.text();
    await served.app.close();
    expect(framesIn(await text).at(-1)?.event).toMatchObject({ type: 'RUN_ERROR', code: 'stopping' });
  });

  it.each(generations)('tells the official client %s of it, and leaves no rejection behind', async (_, make) => {
    const tap = new Tap();
    const served = await serve([{ ...tap.agent, options: { durable: true } }]);
    const client = make({ url: `${served.url}/ag-ui/tap` });
    const run = client.go();
    await tap.started();
    await served.app.close();
    expect(await run).toEqual(['RUN_STARTED', 'RUN_ERROR']);
  });

  it('breaks the stream of a client that resumes', async () => {
    const tap = new Tap();
    const served = await serve([{ ...tap.agent, options: { durable: true } }]);
    const response = await open(served, tap, { 'x-run-id': 'run-1' });
    const text = response.text();
    await Promise.all([expect(text).rejects.toThrow(), served.app.close()]);
  });
});

it('each request may reach another node', async () => {
  const { node } = nodes([askOnce]);
  const protocols = ['ag-ui'] as const;
  const all = [await node('a', { protocols }), await node('b', { protocols }), await node('c', { protocols })];
  let sent = 0;
  const send = (url: string, init: RequestInit): Promise<Response> => {
    sent += 1;
    return fetch(`${all[sent % 3]?.url}${new URL(url).pathname}${new URL(url).search}`, init);
  };
  const own = new ReconnectingAgent({ url: 'http://any.example/ag-ui/ask', fetch: send, threadId: 'a thread' });
  await own.runAgent({ runId: 'run-1' });
  const resume = [{ interruptId: own.pendingInterrupts[0]?.id ?? '', status: 'resolved', payload: 'yes' } as const];
  await own.runAgent({ runId: 'run-2', resume });
  const late = new ReconnectingAgent({ url: 'http://any.example/ag-ui/ask', fetch: send, threadId: 'a thread' });
  await late.connectAgent({ runId: 'run-2' });
  expect(said(late)).toEqual(said(own));
  expect(sent).toBe(3);
});
