import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Event, Run } from '../../src/index.ts';
import { ask, type Framed, frames, parseFrames, textOf, types } from '../support/serve.ts';
import { RestartedServer } from './restarted-server.ts';

const approve = `(input, context) => concat(
  of('I can do that. '),
  context.await('Shall I?').pipe(map(({ message }) => 'You said ' + message.parts[0].content + '.')))`;

/** A replay that stands still is given up after `idleTimeout`. */
const shortReplay = ['--limit', 'idleTimeout=300', '--limit', 'sweepInterval=50'];

// Eleven starts of a process take long while other tests use the machine.
describe.concurrent('a restarted server', () => {
  it('executes each step once, over ten restarts', async (t) => {
    const server = new RestartedServer(
      t,
      'worker',
      `(input, context) => concat(...Array.from({ length: 11 }, (_, i) => concat(
        context.step('work', () => defer(() => { appendFileSync('done', i + '\\n'); return of('did ' + i); })),
        context.step('wait', () => gate('go-' + i)).pipe(ignoreElements()))))`,
      true,
    );
    // At SIGTERM, the second step still waits.
    const limit = ['--limit', 'attempts=100', '--limit', 'shutdownGrace=100'];
    await server.start(...limit);
    const { run_id } = await server.create('worker');
    for (let restart = 0; restart < 10; restart += 1) {
      await server.emitted(run_id, `did ${restart}`);
      const signal = restart % 2 === 0 ? 'SIGKILL' : 'SIGTERM';
      expect(await server.process.stop(signal)).toBe(signal === 'SIGTERM' ? 0 : 'SIGKILL');
      await server.start(...limit);
      server.write(`go-${restart}`);
    }
    server.write('go-10');
    const run = await server.finished(run_id);
    const numbers = Array.from({ length: 11 }, (_, index) => String(index));
    expect(textOf(run)).toBe(numbers.map((number) => `did ${number}`).join(''));
    expect(run.status).toBe('completed');
    expect(server.lines('done')).toEqual(numbers);
  });

  it('fails a run that ends its process each time, after three attempts', async (t) => {
    const server = new RestartedServer(
      t,
      'killer',
      "() => { appendFileSync('entered', 'x\\n'); process.exit(7); }",
      true,
    );
    await server.start();
    // The server may exit before it responds.
    await server.create('killer').catch(() => undefined);
    expect(await server.process.ended()).toBe(7);
    for (let attempt = 1; attempt <= 3; attempt += 1) expect(await server.launch().ended()).toBe(7);

    await server.start();
    const { runs } = await server.get<{ runs: Run[] }>('/runs');
    expect(runs).toMatchObject([
      { status: 'failed', error: { code: 'server_error', data: { reason: 'recovery_exhausted' } } },
    ]);
    expect(runs[0]?.error?.message).toContain('re-entered 3 times');
    // The first time, and three times again.
    expect(server.lines('entered')).toHaveLength(4);
  });

  it('parks a run whose replay emits other output, names the event and both texts, and goes on at `rivulet retry`', async (t) => {
    const server = new RestartedServer(
      t,
      'fickle',
      `(input, context) => concat(
        of('always. '), defer(() => of(readFileSync('mood', 'utf8'))), context.step('wait', () => gate('go')))`,
      true,
    );
    server.write('mood', 'sunny');
    await server.start();
    const { run_id } = await server.create('fickle');
    await server.emitted(run_id, 'sunny');
    await server.process.stop('SIGKILL');
    server.write('mood', 'rainy');
    await server.start(...shortReplay);
    const run = await server.parked(run_id);
    expect(run.status).toBe('in-progress');
    // Created, in progress, the message, 'always. ', and then the mood.
    expect(run.parked?.reason).toMatch(/at event 5, expected .*"sunny".*, got .*"rainy"/);
    expect(textOf(run)).toBe('always. sunny');
    server.write('mood', 'sunny');
    server.write('go');
    const retried = await server.rivulet('retry', run_id);
    expect([retried.code, retried.out]).toEqual([0, `Run ${run_id} is tried again.\n`]);
    expect(textOf(await server.finished(run_id))).toBe('always. sunnygo');
    expect(await server.rivulet('retry', run_id)).toMatchObject({
      code: 2,
      err: expect.stringContaining('not parked'),
    });
  });

  it('loses nothing of a run that awaits when a wrong agent is deployed: it is parked, gets its reply, and answers', async (t) => {
    const server = new RestartedServer(t, 'polite', approve, true);
    await server.start();
    const { run_id } = await server.create('polite');
    await server.emitted(run_id, 'I can do that. ');
    const before = await server.events(run_id);
    expect(await server.process.stop('SIGTERM')).toBe(0);

    server.deploy('polite', approve.replace('I can do that', 'Of course'));
    await server.start(...shortReplay);
    await server.parked(run_id);
    const listed = await server.rivulet('runs', '--parked');
    expect(listed.out).toMatch(/polite +parked/);
    expect(listed.out).toContain(run_id);
    expect((await server.rivulet('runs', '--parked', '--json')).out).toContain('I can do that');
    expect(await server.events(run_id)).toEqual(before);
    const reply = { await_resume: { message: { parts: [{ content: 'yes' }] } }, mode: 'async' };
    expect((await server.post(`/runs/${run_id}`, reply)).status).toBe(202);
    expect(await server.process.stop('SIGTERM')).toBe(0);

    server.deploy('polite', approve.replace('You said', 'Now you said'));
    await server.start();
    const run = await server.finished(run_id);
    expect([run.status, textOf(run)]).toEqual(['completed', 'I can do that. Now you said yes.']);
    expect((await server.events(run_id)).slice(0, before.length)).toEqual(before);
    expect((await server.rivulet('runs', '--parked')).out).not.toContain(run_id);
  });

  it('lets a run that is not durable finish on SIGTERM, and refuses new runs meanwhile', async (t) => {
    const server = new RestartedServer(
      t,
      'slow',
      "() => concat(of('begun, '), gate('go').pipe(ignoreElements()), of('done'))",
      false,
    );
    await server.start();
    const { run_id } = await server.create('slow');
    const tail = await server.tail(run_id);
    server.process.child.kill('SIGTERM');
    const refused = await server.refused();
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    expect((await refused.json()).message).toContain('stopping');
    expect(existsSync(join(server.folder, 'go'))).toBe(false);
    server.write('go');
    const received = await frames(tail);
    expect(received.at(-1)?.event.type).toBe('run.completed');
    expect(await server.process.ended()).toBe(0);

    await server.start();
    const run: Run = await server.get(`/runs/${run_id}`);
    expect([run.status, textOf(run)]).toEqual(['completed', 'begun, done']);
  });

  it('lets the steps of a durable run end on SIGTERM, and begins no other one before the restart', async (t) => {
    const server = new RestartedServer(
      t,
      'pays',
      `(input, context) => {
        const pay = (what) => context.step('pay ' + what, () => concat(
          defer(() => { appendFileSync('began', what + '\\n'); return of('paid ' + what + ', '); }),
          gate('go-' + what).pipe(ignoreElements()),
          defer(() => { appendFileSync('ended', what + '\\n'); return of('confirmed. '); })));
        return concat(pay('one'), pay('two'));
      }`,
      true,
    );
    await server.start('--limit', 'shutdownGrace=60000');
    const { run_id } = await server.create('pays');
    await server.emitted(run_id, 'paid one, ');
    const tail = (await server.tail(run_id)).text();
    server.process.child.kill('SIGTERM');
    expect((await server.refused()).status).toBe(503);
    server.write('go-one');
    expect(await server.process.ended()).toBe(0);
    // The stream went on until the step had ended.
    expect(parseFrames(await tail).filter(({ event }) => event.type === 'message.part')).toHaveLength(2);
    expect([server.lines('began'), server.lines('ended')]).toEqual([['one'], ['one']]);

    await server.start();
    server.write('go-two');
    expect(textOf(await server.finished(run_id))).toBe('paid one, confirmed. paid two, confirmed. ');
    expect([server.lines('began'), server.lines('ended')]).toEqual([
      ['one', 'two'],
      ['one', 'two'],
    ]);
  });

  it('goes on with a step beside a question, without a reply', async (t) => {
    const server = new RestartedServer(
      t,
      'works',
      `(input, context) => merge(
        context.await('Go on?').pipe(ignoreElements()),
        context.step('work', () => concat(
          defer(() => { appendFileSync('began', 'x\\n'); return gate('go').pipe(ignoreElements()); }), of('worked'))))`,
      true,
    );
    await server.start('--limit', 'shutdownGrace=100');
    const { run_id } = await server.create('works');
    await server.hasLines('began', 1);
    expect(await server.process.stop()).toBe(0);
    await server.start();
    await server.hasLines('began', 2);
    server.write('go');
    await server.emitted(run_id, 'worked');
    expect(await server.get(`/runs/${run_id}`)).toMatchObject({ status: 'awaiting' });
  });

  it('exits at once at the second SIGTERM', async (t) => {
    const server = new RestartedServer(t, 'slow', "() => gate('never')", false);
    await server.start('--limit', 'shutdownGrace=60000');
    const { run_id } = await server.create('slow');
    server.process.child.kill('SIGTERM');
    expect((await server.refused()).status).toBe(503);
    // After the grace period, the process would exit with 0.
    expect(await server.process.stop('SIGTERM')).toBe(1);

    await server.start();
    expect(await server.get(`/runs/${run_id}`)).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', data: { reason: 'run_interrupted' } },
    });
  });

  it('changes neither a run that awaits nor its stream', async (t) => {
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
});
