import { map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agent } from '../support/agents.ts';
import { shared } from '../support/serve.ts';
import { headersOf, metaOf, request } from './mcp/modern.ts';

/** As a model in a step says something else after a crash. */
const restarted = agent('restarted', () => [
  'The cat ',
  { role: 'agent', parts: [], finish_reason: 'interrupted' as const },
  'The dog ',
  'ran.',
]);
const remembers = agent('remembers', (_, { session }) =>
  session.history.pipe(
    map(({ role, parts }) => `${role}: ${parts[0]?.content}`),
    toArray(),
    map((said) => said.join(', ')),
  ),
);
const mirror = agent('mirror', (input) => JSON.stringify(input.map(({ parts }) => parts[0]?.content)));

const served = shared([restarted, remembers, mirror]);
const user = { role: 'user', content: 'Go' };

/** The frames of a stream. */
const framesOf = async (path: string, body: object): Promise<{ [field: string]: unknown; type?: string }[]> => {
  const text = await (await (await served()).post(path, body)).text();
  return text.split('\n').flatMap((line) => (line.startsWith('data: {') ? JSON.parse(line.slice(6)) : []));
};
const json = async (path: string, body: object) => (await (await served()).post(path, body)).json();

describe('a message that was interrupted', () => {
  it('is marked in the output and the events of its run', async () => {
    const { run_id, output } = await json('/runs', {
      agent_name: 'restarted',
      input: [{ parts: [{ content: 'Go' }] }],
    });
    const marks = ['interrupted', undefined];
    expect(output.map(({ finish_reason }: { finish_reason?: string }) => finish_reason)).toEqual(marks);
    const { events } = await (await (await served()).get(`/runs/${run_id}/events`)).json();
    const ends = events.filter(({ type }: { type: string }) => type === 'message.completed');
    expect(ends.map(({ message }: { message: { finish_reason?: string } }) => message.finish_reason)).toEqual(marks);
  });

  it('stays in its session, and is in no agent’s history', async () => {
    const session_id = crypto.randomUUID();
    const body = { session_id, input: [{ parts: [{ content: 'Go' }] }] };
    await json('/runs', { agent_name: 'restarted', ...body });
    const { history } = await (await (await served()).get(`/session/${session_id}`)).json();
    expect(history).toHaveLength(3);
    const { output } = await json('/runs', { agent_name: 'remembers', ...body });
    expect(output[0].parts[0].content).toBe('user: Go, agent/restarted: The dog ran.');
  });

  it('is an incomplete item in Responses, and the next one a new item', async () => {
    const { status, output } = await json('/v1/responses', { model: 'restarted', input: 'Go' });
    expect([status, output]).toMatchObject([
      'completed',
      [
        { status: 'incomplete', content: [{ text: 'The cat ' }] },
        { status: 'completed', content: [{ text: 'The dog ran.' }] },
      ],
    ]);
    const frames = await framesOf('/v1/responses', { model: 'restarted', input: 'Go', stream: true });
    const items = frames.filter(({ type }) => type === 'response.output_item.done');
    expect(items).toMatchObject([{ item: { status: 'incomplete' } }, { item: { status: 'completed' } }]);
  });

  it('is not in the input of a client of Responses that posts the items back; an incomplete answer at the end is', async () => {
    const { output } = await json('/v1/responses', { model: 'restarted', input: 'Go' });
    const failed = { role: 'assistant', status: 'incomplete', content: [{ type: 'output_text', text: 'Half' }] };
    const { output: seen } = await json('/v1/responses', {
      model: 'mirror',
      input: [user, ...output, user, failed, user],
    });
    expect(JSON.parse(seen[0].content[0].text)).toEqual(['Go', 'The dog ran.', 'Go', 'Half', 'Go']);
  });

  it('is a paragraph of its own in Chat Completions, which have one text', async () => {
    const { choices } = await json('/v1/chat/completions', { model: 'restarted', messages: [user] });
    expect(choices[0].message.content).toBe('The cat \n\nThe dog ran.');
  });

  it('is a text part with the reason in its provider metadata in the AI SDK', async () => {
    const body = {
      id: crypto.randomUUID(),
      messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Go' }] }],
    };
    const frames = await framesOf('/ai/restarted', body);
    const ends = frames.filter(({ type }) => type === 'text-end');
    expect(ends.map(({ providerMetadata }) => providerMetadata)).toEqual([
      { rivulet: { finish_reason: 'interrupted' } },
      undefined,
    ]);
  });

  it('is a message of its own in AG-UI, with the reason in the metadata of its end', async () => {
    const frames = await framesOf('/ag-ui/restarted', { threadId: 't', runId: 'r', messages: [{ id: 'm', ...user }] });
    const ends = frames.filter(({ type }) => type === 'TEXT_MESSAGE_END');
    expect(ends.map(({ metadata }) => metadata)).toEqual([{ finish_reason: 'interrupted' }, undefined]);
  });

  it('is an artifact of its own in A2A, with a key in its metadata', async () => {
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Go' }] };
    const answer = await (await served()).post('/a2a/restarted/message:send', { message }, { 'a2a-version': '1.0' });
    const { task } = await answer.json();
    expect(task.artifacts).toEqual([
      { artifactId: 'a1', parts: [{ text: 'The cat ' }], metadata: { 'urn:rivulet:a2a:interrupted:1': true } },
      { artifactId: 'a2', parts: [{ text: 'The dog ran.' }] },
    ]);
  });

  it('is not in the result of an MCP tool, which a model reads', async () => {
    const call = request('tools/call', {
      _meta: metaOf(),
      name: 'restarted',
      arguments: { input: 'Go' },
    });
    const headers = headersOf('tools/call', 'restarted');
    const text = await (await (await served()).post('/mcp', call, { ...headers, accept: 'application/json' })).text();
    expect(text).toContain('The dog ran.');
    expect(text).not.toContain('The cat');
  });
});
