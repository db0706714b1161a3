import { expect, it } from 'vitest';
import type { Event, Run } from '../../src/index.ts';
import { ask, type Framed, frames, parseFrames, textOf, types } from '../support/serve.ts';
import { RestartedServer } from './restarted-server.ts';

const approve = `(input, context) => concat(
  of('I can do that. '),
  context.await('Shall I?').pipe(map(({ message }) => 'You said ' + message.parts[0].content + '.')))`;

// restart.servers.ts has more restarts.
it('a restart while a run awaits changes neither the run nor its stream', async (t) => {
  const server = new RestartedServer(t, 'approve', approve, true);
  await server.start();
  const beforeRestart = await frames(await server.post('/runs', ask('approve', 'hi', { mode: 'stream' })));
  expect(beforeRestart.at(-1)?.event.type).toBe('run.awaiting');
  const [first] = beforeRestart;
  const { run_id } = first !== undefined && 'run' in first.event ? first.event.run : { run_id: '' };

  const tail = (await server.tail(run_id)).text();
  expect(await server.process.stop()).toBe(0);
  // A stream that is cut, not ended, would reject.
  const before = parseFrames(await tail);

  await server.start();
  const [rest] = await Promise.all([
    server.tail(run_id, before.at(-1)?.id).then(frames),
    server.post(`/runs/${run_id}`, {
      mode: 'sync',
      await_resume: { type: 'message', message: { parts: [{ content: 'yes' }] } },
    }),
  ]);
  const run: Run = await server.get(`/runs/${run_id}`);
  expect(run.status).toBe('completed');
  expect(textOf(run)).toBe('I can do that. You said yes.');
  const joined: Framed[] = [...before, ...rest];
  const { events } = await server.get<{ events: Event[] }>(`/runs/${run_id}/events`);
  expect(joined).toEqual(events.map((event, index) => ({ id: index + 1, event })));
  expect(types(events).filter((type) => type === 'run.in-progress')).toHaveLength(2);
});
