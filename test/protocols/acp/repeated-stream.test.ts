import { expect, it } from 'vitest';
import { askOnce, echo, tokens } from '../../support/agents.ts';
import { ask, eventsOf, frames, type Served, serveApi } from '../../support/serve.ts';

const again = (n: number, key = 'k') => ({ 'idempotency-key': key, 'last-event-id': `${n}` });
const streamed = (served: Served, text: string, headers: Record<string, string>): Promise<Response> =>
  served.post('/runs', ask('tokens', text, { mode: 'stream' }), headers);
const idsIn = async (response: Response) => (await frames(response)).map(({ id }) => id);
const countOf = async (served: Served): Promise<number> => (await (await served.get('/runs')).json()).runs.length;

it('a repeated request for a stream goes on after the event that its client has', async () => {
  const served = await serveApi([tokens]);
  const first = await streamed(served, '3', { 'idempotency-key': 'k' });
  const events = await frames(first);
  const rest = await streamed(served, '3', again(4));
  expect(rest.headers.get('run-id')).toBe(first.headers.get('run-id'));
  expect(await frames(rest)).toEqual(events.slice(4));
  expect((await streamed(served, '3', again(events.length))).status).toBe(204);
  expect(await countOf(served)).toBe(1);
});

it('a repeated request makes no run where its key is unknown, its body another, or its cursor wrong', async () => {
  const served = await serveApi([tokens]);
  const unknown = await streamed(served, '3', again(4));
  expect([unknown.status, (await unknown.json()).message]).toEqual([
    404,
    'There is no run with the Idempotency-Key k.',
  ]);
  await (await streamed(served, '3', { 'idempotency-key': 'k' })).text();
  expect((await streamed(served, '4', again(4))).status).toBe(422);
  expect((await streamed(served, '3', again(99))).status).toBe(400);
  expect((await streamed(served, '3', { ...again(1), 'last-event-id': 'x' })).status).toBe(400);
  expect(await countOf(served)).toBe(1);
});

it('a repeated request ends at its own question, and a repeated reply goes on after that', async () => {
  const served = await serveApi([askOnce]);
  const body = ask('ask', 'hi', { mode: 'stream' });
  const first = await served.post('/runs', body, { 'idempotency-key': 'k' });
  const asked = (await frames(first)).length;
  const path = `/runs/${first.headers.get('run-id')}`;
  const reply = { mode: 'stream', await_resume: { type: 'message', message: { parts: [{ content: 'yes' }] } } };
  expect((await served.post('/runs', body, again(asked))).status).toBe(204);
  const answered = await frames(await served.post(path, reply, { 'idempotency-key': 'r' }));
  expect((await served.post('/runs', body, again(asked))).status).toBe(204);
  expect(await idsIn(await served.post('/runs', body, again(2)))).toEqual(
    Array.from({ length: asked - 2 }, (_, index) => index + 3),
  );
  expect(await frames(await served.post(path, reply, again(asked + 1, 'r')))).toEqual(answered.slice(1));
  expect(await frames(await served.post(path, reply, again(1, 'r')))).toEqual(answered);
  expect((await served.post(path, reply, again(asked, 'other'))).status).toBe(404);
  expect((await eventsOf(served, path.slice(6))).length).toBe(asked + answered.length);
});

it('without a key, or a stream, a Last-Event-ID means nothing', async () => {
  const served = await serveApi([echo]);
  const { status } = await served.post('/runs', ask('echo', 'hi', { mode: 'stream' }), { 'last-event-id': '3' });
  expect(status).toBe(200);
  expect((await served.post('/runs', ask('echo'), again(3))).status).toBe(200);
});
