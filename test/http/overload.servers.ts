import { Observable, take } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import { defineAgent } from '../../src/index.ts';
import { ask, frames, serve } from '../support/serve.ts';

it('refuses new runs and is not ready while the event loop is late; the runs and streams that there are go on', {
  timeout: 240_000,
}, async () => {
  let emit = (_text: string): void => {};
  const slow = defineAgent({ name: 'slow', description: 'Emits what the test tells it.' }, () =>
    new Observable<string>((subscriber) => {
      emit = (text) => subscriber.next(text);
    }).pipe(take(2)),
  );
  const served = await serve([slow], { overloadDelay: 50 });
  const stream = await served.post('/runs', ask('slow', 'hi', { mode: 'stream' }));
  // Each turn of the event loop takes longer than the limit.
  const blocking = setInterval(() => {
    for (const until = performance.now() + 150; performance.now() < until; );
  }, 10);
  onTestFinished(() => clearInterval(blocking));
  const ready = async (): Promise<number> => (await served.get('/ready')).status;
  await expect.poll(ready).toBe(503);
  const refused = await served.post('/runs', ask('slow'));
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
  expect(await refused.json()).toMatchObject({ code: 'server_error', data: { reason: 'too_busy' } });
  expect((await served.get('/runs')).status).toBe(200);
  expect((await served.get('/health')).status).toBe(200);
  emit('one');
  emit('two');
  expect((await frames(stream)).at(-1)?.event.type).toBe('run.completed');
  clearInterval(blocking);
  await expect.poll(ready).toBe(200);
  // Other load of the machine may make the event loop late again.
  const create = async (): Promise<number> => (await served.post('/runs', ask('slow', 'hi', { mode: 'async' }))).status;
  await expect.poll(create).toBe(202);
});
