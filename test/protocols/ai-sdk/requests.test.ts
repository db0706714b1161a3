import { describe, expect, it } from 'vitest';
import { trajectory } from '../../../src/index.ts';
import { agent, askOnce, echo } from '../../support/agents.ts';
import { type Served, serve } from '../../support/serve.ts';
import { tenantNode, unlimited } from '../../support/tenants.ts';

const said = (id: string, text = 'hi') => ({ id, role: 'user', parts: [{ type: 'text', text }] });
const noRun = '00000000-0000-4000-8000-000000000000';

async function asked(served: Served, chat = 'c'): Promise<{ run: string; question: object }> {
  const response = await served.post('/ai/ask', { id: chat, messages: [said('m1')] });
  await response.text();
  const run = response.headers.get('run-id') ?? '';
  return { run, question: { type: 'dynamic-tool', toolName: 'await', toolCallId: `${run}:q1`, input: {} } };
}

/** The texts of a stream, by their ids. */
function textsIn(stream: string): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [, data = ''] of stream.matchAll(/^data: (\{"type":"(?:text|reasoning)-delta".*)$/gm)) {
    const { id, delta } = JSON.parse(data);
    texts[id] = `${texts[id] ?? ''}${delta}`;
  }
  return texts;
}

describe('a request of a chat', () => {
  it('follows and answers the runs of the agent in its address, and of no other', async () => {
    const served = await serve([askOnce, echo]);
    const { run } = await asked(served);
    expect((await served.get(`/ai/ask/${run}/stream`)).status).toBe(200);
    expect((await served.get(`/ai/echo/${run}/stream`)).status).toBe(204);
    expect((await served.get('/ai/echo/c/stream')).status).toBe(204);
    expect((await served.get('/ai/No%00Name/c/stream')).status).toBe(404);
  });

  it('is answered although a reply has JSON that is nested too deep to be written again', async () => {
    const served = await serve([askOnce]);
    const { run } = await asked(served);
    const content = '['.repeat(50_000) + ']'.repeat(50_000);
    const message = { parts: [{ content_type: 'application/json', content }] };
    await served.post(`/runs/${run}`, { await_resume: { message } });
    expect((await served.get('/ai/ask/c')).status).toBe(200);
    expect((await served.get(`/ai/ask/${run}/stream`, { 'last-event-id': '1.1' })).status).toBe(200);
  });

  it('that is refused gets the reason as text, which chats show', async () => {
    const served = await serve([askOnce, echo]);
    const { run, question } = await asked(served);
    const reply = (part: object, id = run) => ({ id: 'c', messages: [{ id, role: 'assistant', parts: [part] }] });
    const answered = { ...question, state: 'output-available', output: 'yes' };
    const cases: [path: string, body: unknown, status: number, text: string][] = [
      ['/ai/missing', { messages: [said('m')] }, 404, 'There is no agent missing'],
      ['/ai/echo', {}, 422, 'messages: expected at least one.'],
      ['/ai/echo', { messages: [] }, 422, 'messages: expected at least one.'],
      ['/ai/echo', { messages: 'hi' }, 422, 'messages: expected array'],
      ['/ai/echo', { messages: [{ role: 'robot', parts: [] }] }, 422, 'messages[0].role: expected user or assistant'],
      ['/ai/echo', { messages: [{ role: 'user', content: 'hi' }] }, 422, 'messages[0].parts: expected a list'],
      ['/ai/echo', { messages: [{ role: 'user', parts: [{ type: 'text' }] }] }, 422, 'parts[0].text: expected string'],
      [
        '/ai/echo',
        { messages: [{ role: 'user', parts: [{ type: 'file', url: 'file:///a' }] }] },
        422,
        'http, https or data',
      ],
      [
        '/ai/echo',
        { messages: [{ role: 'user', parts: [{ type: 'file', url: 'data:,%zz' }] }] },
        422,
        'percent-encoded',
      ],
      [
        '/ai/echo',
        { messages: [{ role: 'user', parts: [{ type: 'file', url: 'data:image/png;base64,@@' }] }] },
        422,
        'messages[0].parts[0].url: expected a data URL whose content is base64',
      ],
      ['/ai/ask', reply(answered, noRun), 422, 'answers the last question of its run'],
      ['/ai/ask', reply({ ...answered, toolCallId: `${noRun}:q1` }, noRun), 404, `There is no run ${noRun}.`],
      ['/ai/ask', reply(answered, 'msg-1'), 404, 'There is no run msg-1.'],
      ['/ai/ask', { ...reply(answered), id: 'other' }, 404, `There is no run ${run}.`],
      ['/ai/echo', reply(answered), 404, `There is no run ${run}.`],
      ['/ai/ask', reply(question), 422, 'answers the last question of its run'],
      [
        '/ai/ask',
        reply({ ...answered, toolCallId: `${run}:q7` }),
        409,
        'awaits the reply to question 1, not to question 7',
      ],
      ['/ai/ask/a/b/c', {}, 404, 'There is no POST /ai/ask/a/b/c.'],
    ];
    for (const [path, body, status, text] of cases) {
      const response = await served.post(path, body);
      expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
      expect([path, response.status, await response.text()]).toEqual([path, status, expect.stringContaining(text)]);
    }
    expect((await served.post('/ai/ask', reply(answered))).status).toBe(200);
    const late = await served.post('/ai/ask', reply(answered));
    expect([late.status, await late.text()]).toEqual([409, expect.stringContaining('only an awaiting run')]);
  });

  it('with a cursor that is none is refused', async () => {
    const served = await serve([askOnce]);
    const { run } = await asked(served);
    for (const cursor of ['1', '0.1', 'x', '-1.2', '1.2.3', '99.1', '1e3.1']) {
      const response = await served.get(`/ai/ask/${run}/stream`, { 'last-event-id': cursor });
      expect([cursor, response.status]).toEqual([cursor, 400]);
    }
    for (const index of ['-1', 'x', '', '1000', '1.5']) {
      const response = await served.get(`/ai/ask/${run}/stream?startIndex=${index}`);
      expect([index, response.status]).toEqual([index, 400]);
    }
    expect((await served.get(`/ai/ask/${noRun}/stream?startIndex=0`)).status).toBe(404);
    expect((await served.get('/ai/ask/no-chat/stream')).status).toBe(204);
    expect(await (await served.get('/ai/ask/no-chat')).json()).toEqual({ messages: [] });
  });

  it('goes on exactly from each id and each index, also where it is not final', async () => {
    const served = await serve([askOnce]);
    const { run } = await asked(served);
    const all = await (await served.get(`/ai/ask/${run}/stream`)).text();
    const frames = all
      .replace(/^retry: \d+\n/, '')
      .split('\n\n')
      .filter((frame) => frame !== '');
    const numbered = frames.filter((frame) => frame.includes('\nid: '));
    expect(frames.slice(numbered.length).join()).toMatch(/^data: \{"type":"finish".*\},data: \[DONE\]$/);
    for (const [index, frame] of numbered.entries()) {
      const rest = `${frames.slice(index + 1).join('\n\n')}\n\n`;
      const id = /\nid: (\S+)/.exec(frame)?.[1] ?? '';
      for (const response of [
        await served.get(`/ai/ask/${run}/stream`, { 'last-event-id': id }),
        await served.get(`/ai/ask/${run}/stream?startIndex=${index + 1}`),
        await served.get('/ai/ask/c/stream', { 'last-event-id': id }),
      ]) {
        expect((await response.text()).replace(/^retry: \d+\n/, '')).toBe(rest);
        expect(response.headers.get('run-id')).toBe(run);
        expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
      }
    }
  });

  it('for a long turn gets its text in a few chunks, and exactly the rest after each; one that counts gets each', async () => {
    const writes = agent('writes', async function* (_, context) {
      for (let n = 0; n < 3_000; n += 1) yield n % 1_000 === 0 ? trajectory({ message: `Part ${n}` }) : `"${n}"\n`;
      await context.await('Enough?');
    });
    const served = await serve([writes]);
    const response = await served.post('/ai/writes', { id: 'long', messages: [said('m1')] });
    const whole = textsIn(await response.text());
    const read = async (query: string, headers = {}): Promise<string> =>
      (await served.get(`/ai/writes/long/stream${query}`, headers)).text();
    const joined = await read('');
    expect(textsIn(joined)).toEqual(whole);
    const ids = [...joined.matchAll(/^id: (\S+)/gm)].map(([, id = '']) => id);
    expect(ids.length).toBeLessThan(100);
    expect((await read('?startIndex=0')).match(/^id: /gm)?.length).toBeGreaterThan(3_000);
    for (const [index, id] of ids.entries()) {
      const before = joined.split('\n\n').slice(0, index + 1);
      // As resumingFetch asks: the id has precedence.
      const rest = await read('?startIndex=0', { 'last-event-id': id });
      expect([id, textsIn(`${before.join('\n\n')}\n\n${rest}`)]).toEqual([id, whole]);
    }
  });
});

describe('the chats of a tenant', () => {
  it('are to others as if they did not exist', async () => {
    const node = await tenantNode(unlimited);
    const [alice, bob] = [node.as('alice'), node.as('bob')];
    const post = (body: object) => ({ method: 'POST', body });
    const first = await alice('/ai/ask', post({ id: 'c', messages: [said('m1')] }));
    const run = first.headers['run-id'] ?? '';
    const answer = {
      type: 'dynamic-tool',
      toolName: 'await',
      toolCallId: `${run}:q1`,
      state: 'output-available',
      output: 'y',
    };
    const reply = { id: 'c', messages: [{ id: run, role: 'assistant', parts: [answer] }] };
    const other = (text: string) => text.replaceAll(run, noRun);
    for (const [path, request] of [
      [`/ai/ask/${run}/stream`, {}],
      [`/ai/ask/${run}/stream`, { headers: { 'last-event-id': '1.1' } }],
      ['/ai/ask/c/stream', {}],
      ['/ai/ask/c', {}],
      ['/ai/ask', post(reply)],
    ] as const) {
      const theirs = await bob(path, request);
      const none = await bob(other(path), JSON.parse(other(JSON.stringify(request))));
      expect([path, theirs.status, other(theirs.text)]).toEqual([path, none.status, none.text]);
    }
    // The same id of a chat is another chat.
    await bob('/ai/echo', post({ id: 'c', messages: [said('m9', 'mine')] }));
    expect(JSON.parse((await bob('/ai/echo/c')).text).messages).toHaveLength(2);
    expect(JSON.parse((await alice('/ai/ask/c')).text).messages).toHaveLength(1);
    expect((await alice('/ai/ask', post(reply))).text).toContain('You said y.');
  });
});
