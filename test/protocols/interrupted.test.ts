import { map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agent } from '../support/agents.ts';
import { shared } from '../support/serve.ts';

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

const json = async (path: string, body: object) => (await (await served()).post(path, body)).json();

// interrupted.clients.ts has what the official clients of the other protocols get.
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
});
