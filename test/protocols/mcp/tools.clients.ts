import type { ElicitResult } from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { echo, never } from '../../support/agents.ts';
import { eventsOf, finished, serveAll, types } from '../../support/serve.ts';
import { adds, fails, files, forms, routed, talker } from './agents.ts';
import { type Asked, clients, type Result } from './clients.ts';

const served = await serveAll([talker, fails, files, adds, forms, echo, never, routed]);

const textIn = ({ content }: Result): string => content.map(({ text }) => text).join('|');
const runOf = ({ _meta }: Result): string => String(_meta?.['rivulet/run_id']);
const yes = () => ({ action: 'accept', content: { answer: 'yes' } }) as const;

describe.each(clients)('%s', (_, open, isModern) => {
  it('lists agents as tools, with the names and schemas that they state', async () => {
    const { tools } = await (await open(served.url)).listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'add_numbers',
      'echo',
      'fails',
      'files',
      'forms',
      'never',
      'routed',
      'talker',
    ]);
    expect(tools[0]).toMatchObject({ title: 'Add numbers', inputSchema: { required: ['a', 'b'] } });
    expect(tools[1]?.inputSchema).toMatchObject({ type: 'object', required: ['input'] });
  });

  it('calls a tool, sees its progress, answers its question, and gets the result', async () => {
    const asked: Asked[] = [];
    const client = await open(served.url, {
      answer: (one) => {
        asked.push(one);
        return yes();
      },
    });
    const progress: { progress: number; message?: string }[] = [];
    const result = await client.call('talker', { input: 'hi' }, { onprogress: (one) => progress.push(one) });
    expect(result.isError).toBe(false);
    expect(textIn(result)).toContain('You said yes. And so on.');
    expect(asked).toMatchObject([{ message: 'Well?', requestedSchema: { required: ['answer'] } }]);
    const messages = progress.map(({ message }) => message);
    expect(messages).toContain('three.');
    expect(messages).toContain('search');
    expect(messages).toContain('half');
    expect(client.errors).toEqual([]);
  });

  it('gets the answer of a quick call without a stream', async () => {
    const types = new Set<string | null>();
    const client = await open(served.url, {
      fetch: async (...request) => {
        const response = await fetch(...request);
        types.add(response.headers.get('content-type'));
        return response;
      },
    });
    expect(textIn(await client.call('echo', { input: 'hi' }))).toBe('hi');
    expect(types).not.toContain('text/event-stream; charset=utf-8');
  });

  it('goes on with the conversation of a session', async () => {
    const client = await open(served.url);
    const [one, two] = [
      await client.call('echo', { input: '1', session_id: 'a conversation' }),
      await client.call('echo', { input: '2', session_id: 'a conversation' }),
    ];
    const [first, second] = await Promise.all([one, two].map((result) => finished(served, runOf(result))));
    expect(first?.session_id).toBe(second?.session_id);
  });

  it('gets the failure of a run as a result that says so', async () => {
    const result = await (await open(served.url)).call('fails', { input: '' });
    expect([result.isError, textIn(result)]).toEqual([true, 'There is no ink. (out_of_ink)']);
  });

  it('gets files, links and citations', async () => {
    const result = await (await open(served.url)).call('files', { input: '' });
    expect(result.content).toEqual([
      { type: 'text', text: 'See ' },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
      {
        type: 'resource_link',
        uri: 'https://example.com/a.png',
        name: 'https://example.com/a.png',
        mimeType: 'image/png',
      },
      {
        type: 'resource',
        resource: { uri: `rivulet://runs/${runOf(result)}/a.txt`, mimeType: 'text/plain', text: 'text' },
      },
      {
        type: 'resource',
        resource: { uri: `rivulet://runs/${runOf(result)}/b.bin`, mimeType: 'application/octet-stream', blob: '/wA=' },
      },
    ]);
    expect(result._meta).toMatchObject({ 'rivulet/citations': [{ url: 'https://example.com/', title: 'Example' }] });
  });

  it('gives arguments and gets data as the schemas of the tool say', async () => {
    const client = await open(served.url);
    await client.listTools();
    const result = await client.call('add_numbers', { a: 1, b: 2 });
    expect([result.structuredContent, textIn(result)]).toEqual([{ sum: 3 }, '{"sum":3}']);
    await expect(client.call('add_numbers', { a: 1 })).rejects.toThrow("must have required property 'b'");
    const unlucky = await client.call('add_numbers', { a: 13, b: 2 });
    expect([unlucky.isError, textIn(unlucky)]).toEqual([true, expect.stringContaining('output/sum: must be number')]);
    await expect(client.call('unknown', {})).rejects.toThrow('there is no tool unknown');
  });

  it.each([
    ['flat', { name: 'Ada', age: 36 }, 'application/json {"name":"Ada","age":36}'],
    ['yes', { answer: true }, 'application/json true'],
    ['deep', { answer: '{"tags":["a"]}' }, 'application/json {"tags":["a"]}'],
    ['text', { answer: 'as it is' }, 'text/plain as it is'],
  ])('answers a form (%s) with what the agent has asked for', async (kind, content, reply) => {
    const asked: Asked[] = [];
    const client = await open(served.url, {
      answer: (one) => {
        asked.push(one);
        return { action: 'accept', content };
      },
    });
    expect(textIn(await client.call('forms', { input: kind }))).toBe(reply);
    const { requestedSchema } = asked[0] ?? {};
    expect(requestedSchema).toMatchObject({ type: 'object' });
    // No client knows this format.
    expect(JSON.stringify(requestedSchema)).not.toContain('hostname');
  });

  it('declines: no is a reply to a yes-or-no question, and the end of a run that asks for anything else', async () => {
    const client = await open(served.url, { answer: () => ({ action: 'decline' }) });
    expect(textIn(await client.call('forms', { input: 'yes' }))).toBe('application/json false');
    const result = await client.call('forms', { input: 'text' });
    expect([result.isError, textIn(result)]).toEqual([true, expect.stringContaining('cancelled')]);
    expect((await finished(served, runOf(result))).status).toBe('cancelled');
  });

  it('without forms is told so, and the run is cancelled', async () => {
    const client = await open(served.url);
    for (const options of [{}, { onprogress: () => {} }]) {
      const called = client.call('forms', { input: 'text' }, options);
      if (isModern) {
        const data = { requiredCapabilities: { elicitation: { form: {} } } };
        await expect(called).rejects.toMatchObject({ code: -32021, data });
      } else {
        const result = await called;
        expect([result.isError, textIn(result)]).toEqual([true, expect.stringContaining('elicitation')]);
      }
      const { runs } = await (await served.get('/runs?agent_name=forms&limit=1')).json();
      expect((await finished(served, runs[0].run_id)).status).toBe('cancelled');
    }
  });

  it('repeats in headers the arguments that a tool names', async () => {
    const client = await open(served.url);
    await client.listTools();
    const result = await client.call('routed', { region: 'Köln', order: { count: 3 } });
    expect(textIn(result)).toBe('{"region":"Köln","order":{"count":3}}');
  });

  it('is asked again, or told why its call ends, where its reply does not fit', async () => {
    let asked = 0;
    const answer = (): ElicitResult => {
      asked += 1;
      return { action: 'accept', content: asked === 1 ? { name: 'Ada', age: -1 } : { name: 'Ada' } };
    };
    const client = await open(served.url, { answer });
    const result = await client.call('forms', { input: 'flat' });
    if (isModern) {
      expect([asked, textIn(result)]).toEqual([2, 'application/json {"name":"Ada"}']);
      return;
    }
    const why = expect.stringMatching(/the reply to its question does not fit the form: .*age/);
    expect([asked, result.isError, textIn(result)]).toEqual([1, true, why]);
    // The answer to the reply says it on any node, also where another one has the stream.
    await expect.poll(() => client.errors.map(({ message }) => message)).toContainEqual(why);
    expect((await finished(served, runOf(result))).status).toBe('cancelled');
  });

  it('cancels a call, and its run with it', async () => {
    const stop = new AbortController();
    const client = await open(served.url);
    const call = client.call('never', { input: '' }, { signal: stop.signal, onprogress: () => stop.abort() });
    await expect(call).rejects.toThrow();
    const newest = async () => (await (await served.get('/runs?agent_name=never&limit=1')).json()).runs[0];
    await expect.poll(async () => (await newest())?.status).toBe('cancelled');
    const { run_id } = await newest();
    expect(types(await eventsOf(served, run_id)).at(-1)).toBe('run.cancelled');
  });
});
