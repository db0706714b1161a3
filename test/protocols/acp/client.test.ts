import { type AwaitResume, Client, type Event } from 'acp-sdk';
import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agent, askOnce, echo, never } from '../../support/agents.ts';
import { oneMessage } from '../../support/run-output.ts';
import { serveApi } from '../../support/serve.ts';

const text = (content: string): string => content;
const answer = (content: string): AwaitResume => ({
  type: 'message',
  message: {
    role: 'user',
    parts: [{ content_type: 'text/plain', content, content_encoding: 'plain' }],
    created_at: null,
    completed_at: null,
  },
});
const contentOf = (messages: { parts: { content?: string | null }[] }[]): string =>
  messages.flatMap(({ parts }) => parts.map((part) => part.content)).join('|');

async function collect(stream: AsyncIterable<Event>): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

const setUp = async (more: Parameters<typeof serveApi>[0] = []) => {
  const served = await serveApi([echo, askOnce, never, ...more]);
  return { served, client: new Client({ baseUrl: served.url }) };
};

/** The published client of the protocol, unchanged, with a listening server. */
describe('an ACP client', () => {
  it('pings and lists', async () => {
    const { client } = await setUp();
    await client.ping();
    expect((await client.agents()).map(({ name }) => name)).toEqual(['ask', 'echo', 'never']);
    expect((await client.agent('echo')).description).toBe("The test's echo.");
    await expect(client.agent('unknown')).rejects.toThrow('There is no agent unknown');
  });

  it('runs in sync mode', async () => {
    const { client } = await setUp();
    const run = await client.runSync('echo', text('Hello'));
    expect(run.status).toBe('completed');
    expect(contentOf(run.output)).toBe('Hello');
    expect(run.output[0]?.role).toBe('agent/echo');
  });

  it('runs in async mode and reads the run later', async () => {
    const { client, served } = await setUp();
    const { run_id, status } = await client.runAsync('echo', text('Hello'));
    expect(status).toBe('created');
    await (await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' })).text();
    expect(contentOf((await client.runStatus(run_id)).output)).toBe('Hello');
  });

  it('runs in stream mode and reads the same events afterwards', async () => {
    const { client } = await setUp();
    const events = await collect(client.runStream('echo', text('Hello')));
    expect(events.map(({ type }) => type)).toEqual(oneMessage());
    const [first] = events;
    const run_id = first?.type === 'run.created' ? first.run.run_id : '';
    expect(await client.runEvents(run_id)).toEqual(events);
  });

  it('awaits and resumes in all three modes', async () => {
    const { client, served } = await setUp();
    const awaiting = async () => {
      const run = await client.runSync('ask', text('go'));
      expect(run.status).toBe('awaiting');
      expect(run.await_request?.type).toBe('message');
      return run.run_id;
    };

    const sync = await client.runResumeSync(await awaiting(), answer('sync'));
    expect(sync.status).toBe('completed');
    expect(contentOf(sync.output)).toBe('before. |You said sync.');

    const started = await client.runResumeAsync(await awaiting(), answer('async'));
    expect(started.status).toBe('in-progress');
    await (await served.get(`/runs/${started.run_id}/events`, { accept: 'text/event-stream' })).text();
    expect(contentOf((await client.runStatus(started.run_id)).output)).toBe('before. |You said async.');

    const events = await collect(client.runResumeStream(await awaiting(), answer('stream')));
    expect(events.map(({ type }) => type)).toEqual([
      'run.in-progress',
      'message.created',
      'message.part',
      'message.completed',
      'run.completed',
    ]);
  });

  it('gets a stream that ends at the await', async () => {
    const { client } = await setUp();
    const events = await collect(client.runStream('ask', text('go')));
    expect(events.at(-1)?.type).toBe('run.awaiting');
  });

  it('cancels', async () => {
    const { client, served } = await setUp();
    const { run_id } = await client.runAsync('never', text('go'));
    expect((await client.runCancel(run_id)).status).toBe('cancelling');
    await (await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' })).text();
    expect((await client.runStatus(run_id)).status).toBe('cancelled');
  });

  it('uses sessions', async () => {
    const seen: string[] = [];
    const historian = agent('historian', (_, context) => {
      context.session.history.subscribe((message) => seen.push(contentOf([message])));
      return context.session.state<string>().then(() => 'noted');
    });
    const { client } = await setUp([historian]);
    await client.withSession(async (session) => {
      const one = await session.runSync('echo', text('one'));
      const two = await session.runSync('historian', text('two'));
      expect(one.session_id).toBe(session.sessionId);
      expect(two.session_id).toBe(session.sessionId);
    });
    expect(seen).toEqual(['one', 'one']);
  });

  it('gets a failed run as a run, not as an HTTP error', async () => {
    const { client } = await setUp([
      agent('bad', () => {
        throw new Error('no');
      }),
      agent('still', () => NEVER),
    ]);
    const run = await client.runSync('bad', text('go'));
    expect(run.status).toBe('failed');
    expect(run.error).toMatchObject({ code: 'server_error', message: 'no' });
  });
});
