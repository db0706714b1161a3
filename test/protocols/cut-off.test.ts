import { map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agent } from '../support/agents.ts';
import { shared } from '../support/serve.ts';

/** As a model that comes to its limit of tokens. */
const limited = agent('limited', () => ['Once upon ', { role: 'agent', parts: [], finish_reason: 'length' as const }]);
const filtered = agent('filtered', () => [
  'I ',
  { role: 'agent', parts: [], finish_reason: 'content_filter' as const },
]);
/** Its first answer is cut off, and its second one is whole. */
const goesOn = agent('goes-on', () => ['a', { role: 'agent', parts: [], finish_reason: 'length' as const }, 'b']);
const remembers = agent('remembers', (_, { session }) =>
  session.history.pipe(
    map(({ parts, finish_reason }) => `${parts[0]?.content} (${finish_reason})`),
    toArray(),
    map((said) => said.join(', ')),
  ),
);

const served = shared([limited, filtered, goesOn, remembers]);
const user = { role: 'user', content: 'Go' };
const json = async (path: string, body: object) => (await (await served()).post(path, body)).json();
const framesOf = async (path: string, body: object) => {
  const text = await (await (await served()).post(path, body)).text();
  return text.split('\n').flatMap((line) => (line.startsWith('data: {') ? JSON.parse(line.slice(6)) : []));
};

describe('a message that was cut off', () => {
  it('says why in the output of its run, and is in the history of the next', async () => {
    const session_id = crypto.randomUUID();
    const body = { session_id, input: [{ parts: [{ content: 'Go' }] }] };
    const { status, output } = await json('/runs', { agent_name: 'limited', ...body });
    expect([status, output]).toMatchObject(['completed', [{ finish_reason: 'length' }]]);
    const next = await json('/runs', { agent_name: 'remembers', ...body });
    expect(next.output[0].parts[0].content).toBe('Go (undefined), Once upon  (length)');
  });

  it.each([
    ['limited', 'length', 'max_output_tokens'],
    ['filtered', 'content_filter', 'content_filter'],
  ])('is the end of Chat Completions and of an incomplete response: %s', async (model, finish, reason) => {
    const { choices } = await json('/v1/chat/completions', { model, messages: [user] });
    expect(choices[0].finish_reason).toBe(finish);
    const chunks = await framesOf('/v1/chat/completions', { model, messages: [user], stream: true });
    expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason).filter(Boolean)).toEqual([finish]);
    const incomplete = { status: 'incomplete', incomplete_details: { reason } };
    const whole = await json('/v1/responses', { model, input: 'Go' });
    expect(whole).toMatchObject({ ...incomplete, output: [{ status: 'incomplete' }] });
    const frames = await framesOf('/v1/responses', { model, input: 'Go', stream: true });
    expect(frames.at(-1)).toMatchObject({ type: 'response.incomplete', response: incomplete });
    expect(await (await (await served()).get(`/v1/responses/${whole.id}`)).json()).toMatchObject(incomplete);
  });

  it('is no end where the agent goes on', async () => {
    const { choices } = await json('/v1/chat/completions', { model: 'goes-on', messages: [user] });
    expect([choices[0].finish_reason, choices[0].message.content]).toEqual(['stop', 'a\n\nb']);
    expect(await json('/v1/responses', { model: 'goes-on', input: 'Go' })).toMatchObject({
      status: 'completed',
      incomplete_details: null,
    });
  });

  it('is in the metadata of the AI SDK’s message, and of its text', async () => {
    const id = crypto.randomUUID();
    const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Go' }] }];
    const frames = await framesOf('/ai/limited', { id, messages });
    expect(frames.find(({ type }) => type === 'text-end').providerMetadata.rivulet).toEqual({
      finish_reason: 'length',
    });
    expect(frames.at(-1).messageMetadata).toEqual({ status: 'completed', finish_reason: 'length' });
    const transcript = await (await (await served()).get(`/ai/limited/${id}`)).json();
    expect(transcript.messages[1].metadata.finish_reason).toBe('length');
  });

  it('is in the metadata of AG-UI’s message and of A2A’s artifact', async () => {
    const frames = await framesOf('/ag-ui/limited', { threadId: 't', runId: 'r', messages: [{ id: 'm', ...user }] });
    expect(frames.find(({ type }) => type === 'TEXT_MESSAGE_END').metadata).toEqual({ finish_reason: 'length' });
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Go' }] };
    const answer = await (await served()).post('/a2a/limited/message:send', { message }, { 'a2a-version': '1.0' });
    const { task } = await answer.json();
    expect(task.artifacts[0].metadata).toEqual({ 'urn:rivulet:a2a:cut-off:1': 'length' });
  });
});
