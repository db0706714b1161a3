import type { Agent, Event, Rivulet, Run } from 'rivulet';
import { ClientError, messages, parts, text, toRun } from 'rivulet/client';
import { concat, defer, finalize, lastValueFrom, map, NEVER, type Observable, take, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { agent, askOnce, echo, never, Tap, tokens } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { listed, withoutInput } from '../support/details.ts';
import { oneMessage } from '../support/run-output.ts';
import { textOf } from '../support/serve.ts';

/** How the suite gets a Rivulet with these agents; a run that never ends is not waited for when it is closed. */
export type Open = (agents: Agent[]) => Promise<{ readonly rivulet: Rivulet; close(): Promise<void> }>;

const all = <T>(source: Observable<T>): Promise<T[]> => lastValueFrom(source.pipe(toArray()));
const runIn = (event: Event | undefined): Run => {
  if (event === undefined || !('run' in event)) throw new Error(`no run in ${JSON.stringify(event)}`);
  return event.run;
};
/** What a call fails with, and its fields. */
async function failure(call: Promise<unknown>): Promise<Partial<ClientError>> {
  const error: unknown = await call.then(
    () => expect.unreachable('the call has to fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ClientError)) throw error;
  const { code, message, status, data, retryable } = error;
  return { code, message, status, data, retryable };
}
/** Subscribes; `there` resolves at the first event of a type, `over` at the end. */
function reading(source: Observable<Event>, type: Event['type']) {
  const seen: Event[] = [];
  const found = deferred();
  const over = deferred();
  const subscription = source.subscribe({
    next: (event) => {
      seen.push(event);
      if (event.type === type) found.resolve();
    },
    error: over.reject,
    complete: over.resolve,
  });
  onTestFinished(() => subscription.unsubscribe());
  return { seen, there: found.promise, over: over.promise, subscription };
}

const missing = '00000000-0000-4000-8000-000000000000';
const uuid = (n: number): string => `11111111-2222-4333-8444-${String(n).padStart(12, '0')}`;

const fails = agent('fails', () => {
  throw new Error('no luck');
});
const remembers = agent('remembers', (_input, { session }) =>
  defer(async () => {
    const count = ((await session.state<number>()) ?? 0) + 1;
    await session.setState(count);
    return `run ${count}`;
  }),
);
const asksTwice = agent('asks-twice', (_input, context) =>
  concat(
    context.await('First?').pipe(map(({ message }) => `${message.parts[0]?.content},`)),
    context.await('Second?').pipe(map(({ message }) => `${message.parts[0]?.content}`)),
  ),
);

/** What holds for agents that are called through the interface Rivulet, wherever they run. */
export function rivuletContract(name: string, open: Open): void {
  describe(`Rivulet ${name}`, () => {
    let opened: Awaited<ReturnType<Open>>;
    let rivulet: Rivulet;
    const tap = new Tap();
    let gone = deferred();
    const held = agent('held', () => NEVER.pipe(finalize(() => gone.resolve())));

    beforeAll(async () => {
      opened = await open([echo, tokens, askOnce, asksTwice, never, fails, remembers, tap.agent, held]);
      rivulet = opened.rivulet;
    });
    afterAll(() => opened.close());

    describe('agents', () => {
      it('are listed by name, in pages, and described', async () => {
        const names = (await rivulet.agents()).map((one) => one.name);
        expect(names).toEqual(names.toSorted());
        expect(names).toHaveLength(9);
        expect((await rivulet.agents({ limit: 2, offset: 1 })).map((one) => one.name)).toEqual(names.slice(1, 3));
        // Only a server has addresses.
        const { addresses: _, ...described } = await rivulet.agent('fails');
        expect(described).toEqual({
          name: 'fails',
          description: "The test's fails.",
          input_content_types: ['*/*'],
          output_content_types: ['*/*'],
        });
      });
    });

    describe('the feed of runs', () => {
      it('begins with the newest runs, and shows each change of status until it is unsubscribed', async () => {
        const session_id = uuid(70);
        const old = await rivulet.sync('echo', 'old', { session_id });
        const states: string[] = [];
        const { promise: isReady, resolve: onReady } = deferred();
        const { promise: isOver, resolve: over } = deferred();
        const subscription = rivulet.watchRuns({ session_id }, { onReady }).subscribe(({ run_id, status, output }) => {
          states.push(`${run_id} ${status}`);
          expect(output).toEqual([]);
          if (run_id !== old.run_id && status === 'completed') over();
        });
        onTestFinished(() => subscription.unsubscribe());
        await isReady;
        expect(states).toEqual([`${old.run_id} completed`]);
        const asked = await rivulet.sync('ask', 'go', { session_id });
        await rivulet.resume(asked.run_id, 'yes');
        await isOver;
        expect(states).toContain(`${asked.run_id} awaiting`);
        subscription.unsubscribe();
        const before = states.length;
        await rivulet.sync('echo', 'new', { session_id });
        expect(states).toHaveLength(before);
      });

      it('shows a run that leaves the status of the filter', async () => {
        const session_id = uuid(71);
        const asked = await rivulet.sync('ask', 'go', { session_id });
        const filter = { session_id, status: 'awaiting' as const, limit: 1 };
        const seen = lastValueFrom(rivulet.watchRuns(filter).pipe(take(2), toArray()));
        const inbox = rivulet.watchRuns(filter);
        await lastValueFrom(inbox.pipe(take(1)));
        await rivulet.resume(asked.run_id, 'yes');
        expect((await seen).map(({ run_id, status }) => [run_id, status === 'awaiting'])).toEqual([
          [asked.run_id, true],
          [asked.run_id, false],
        ]);
      });

      it('fails as the list does, and with the reason of a signal', async () => {
        const bad = { agent_name: 'No Name' };
        expect(await failure(lastValueFrom(rivulet.watchRuns(bad)))).toEqual(await failure(rivulet.runs(bad)));
        const many = { limit: 1_000 };
        expect(await failure(lastValueFrom(rivulet.watchRuns(many)))).toEqual(await failure(rivulet.runs(many)));
        const abort = new AbortController();
        const watched = lastValueFrom(rivulet.watchRuns({}, { signal: abort.signal }));
        abort.abort(new Error('enough'));
        await expect(watched).rejects.toThrow('enough');
      });
    });

    describe('a loop over a failed run', () => {
      const readAll = async (events: AsyncIterable<Event>): Promise<string[]> => {
        const seen: string[] = [];
        try {
          for await (const { type } of events) seen.push(type);
        } catch (error) {
          if (!(error instanceof ClientError)) throw error;
          seen.push(`${error.code}: ${error.message}`);
          expect(error.retryable).toBe(false);
        }
        return seen;
      };

      it('gets all events and then throws the error of the run, also when it joins late', async () => {
        const types = ['run.created', 'run.in-progress', 'run.failed'];
        const thrown = [...types, expect.stringContaining(': no luck')];
        expect(await readAll(rivulet.run('fails', 'go'))).toEqual(thrown);
        const { run_id } = await rivulet.sync('fails', 'go');
        expect(await readAll(rivulet.watch(run_id))).toEqual(thrown);
        expect(await readAll(rivulet.watch(run_id, { onFailed: 'end' }))).toEqual(types);
        expect(await readAll(rivulet.run('fails', 'go', { until: 'settled', onFailed: 'end' }))).toEqual(types);
      });

      it('is not one over a cancelled run, and a subscriber gets the failure as an event', async () => {
        const { run_id } = await rivulet.start('never', 'go');
        await rivulet.cancel(run_id);
        expect((await readAll(rivulet.watch(run_id))).at(-1)).toBe('run.cancelled');
        expect((await all(rivulet.run('fails', 'go'))).at(-1)?.type).toBe('run.failed');
        await expect(all(rivulet.run('fails', 'go').pipe(text()))).rejects.toThrow('no luck');
      });
    });

    describe('a run', () => {
      it('is awaited as a promise of the Run, also where it fails or asks', async () => {
        const run = await rivulet.sync('echo', ['a', { content: 'b' }]);
        expect(run).toMatchObject({ agent_name: 'echo', status: 'completed', session_id: expect.any(String) });
        expect(run.output).toMatchObject([
          { role: 'agent/echo', parts: [{ content_type: 'text/plain', content: 'a' }, { content: 'b' }] },
        ]);
        const { input, ...rest } = await rivulet.get(run.run_id);
        expect(rest).toEqual(run);
        expect(input).toMatchObject([{ role: 'user', parts: [{ content: 'a' }, { content: 'b' }] }]);
        expect(await rivulet.sync('fails', 'go')).toMatchObject({ status: 'failed', error: { message: 'no luck' } });
        expect(await rivulet.sync('ask', 'go')).toMatchObject({
          status: 'awaiting',
          output: [{ parts: [{ content: 'before. ' }] }],
          await_request: { type: 'message', message: { parts: [{ content: 'Well?' }] } },
        });
      });

      it('is started, continues without readers, and is followed later from its first event', async () => {
        const run = await rivulet.start('tokens', '3');
        expect(run).toMatchObject({ status: 'created', output: [] });
        const events = await all(rivulet.watch(run.run_id));
        expect(events.map(({ type }) => type)).toEqual(oneMessage(3));
        expect(runIn(events[0])).toEqual(run);
        expect(runIn(events.at(-1))).toEqual(withoutInput(await rivulet.get(run.run_id)));
      });

      it('streams its tokens as they come, through the operators of the client', async () => {
        expect(await all(rivulet.run('tokens', '3').pipe(text()))).toEqual(['t0 ', 't0 t1 ', 't0 t1 t2 ']);
        expect((await all(rivulet.run('tokens', '2').pipe(parts()))).map(({ content }) => content)).toEqual([
          't0 ',
          't1 ',
        ]);
        expect(await all(rivulet.run('echo', 'a').pipe(messages()))).toMatchObject([{ role: 'agent/echo' }]);
        await expect(all(rivulet.run('fails', 'go').pipe(text()))).rejects.toMatchObject({
          name: 'ClientError',
          message: 'no luck',
          status: 200,
        });
      });

      it('is made by each subscription, and by nothing else', async () => {
        const session_id = uuid(1);
        const events = rivulet.run('echo', 'a', { session_id });
        expect((await rivulet.runs({ session_id })).runs).toEqual([]);
        const [first] = await all(events);
        const [second] = await all(events);
        const { runs } = await rivulet.runs({ session_id });
        expect(runs.map(({ run_id }) => run_id)).toEqual([runIn(second).run_id, runIn(first).run_id]);
      });

      it('is made once for an idempotency key, and the key is refused for another body', async () => {
        const once = { idempotency_key: `key of ${name}` };
        const first = await rivulet.start('echo', 'a', once);
        expect((await rivulet.start('echo', 'a', once)).run_id).toBe(first.run_id);
        expect((await rivulet.sync('echo', 'a', once)).run_id).toBe(first.run_id);
        expect(await failure(rivulet.start('echo', 'b', once))).toMatchObject({
          status: 422,
          data: { reason: 'idempotency_key_reused' },
        });
      });

      it('shares no object with its caller', async () => {
        const input = { role: 'user', parts: [{ content: 'as it was' }] };
        const { run_id } = await rivulet.start('echo', input);
        input.parts[0] = { content: 'changed' };
        const run = await lastValueFrom(rivulet.watch(run_id).pipe(toRun()));
        expect(textOf(run)).toBe('as it was');
        run.output.length = 0;
        expect(textOf(await rivulet.get(run_id))).toBe('as it was');
        (await rivulet.agent('echo')).input_content_types?.push('text/odd');
        expect((await rivulet.agent('echo')).input_content_types).toEqual(['*/*']);
      });

      it('is listed in pages without its output, and deleted', async () => {
        const session_id = uuid(2);
        const made = [];
        for (const word of ['a', 'b', 'c']) made.push(await rivulet.sync('echo', word, { session_id }));
        const rows = made.map((run, index) => listed(run, 'abc'[index] ?? '')).toReversed();
        const first = await rivulet.runs({ session_id, limit: 2 });
        expect(first).toEqual({ runs: rows.slice(0, 2), next_cursor: expect.any(String) });
        expect(await rivulet.runs({ session_id, limit: 2, cursor: first.next_cursor })).toEqual({
          runs: rows.slice(2),
        });
        expect(await rivulet.runs({ session_id: session_id.toUpperCase(), status: 'failed' })).toEqual({ runs: [] });
        const { run_id = '' } = made[0] ?? {};
        expect(await rivulet.remove(run_id)).toBeUndefined();
        expect(await failure(rivulet.get(run_id))).toMatchObject({ status: 404, data: { reason: 'run_unknown' } });
      });
    });

    describe('a run stream', () => {
      it('is resumed after the cursor, with no missing or duplicate events', async () => {
        const { run_id } = await rivulet.start('tap', 'go');
        await tap.started();
        tap.push('one ');
        const before = await all(rivulet.watch(run_id).pipe(take(4)));
        tap.push('two ');
        tap.complete();
        const after = await all(rivulet.watch(run_id, { after: 4 }));
        expect([...before, ...after]).toEqual(await all(rivulet.watch(run_id)));
        const folded = await all(rivulet.watch(run_id, { after: 4 }).pipe(toRun(await atCursor(run_id, 4))));
        expect(folded.at(-1)).toEqual(withoutInput(await rivulet.get(run_id)));
      });

      it('is empty after the last event, and refuses a cursor that the run does not have', async () => {
        const { run_id } = await rivulet.sync('echo', 'a');
        const { length } = await all(rivulet.watch(run_id));
        expect(await all(rivulet.watch(run_id, { after: length }))).toEqual([]);
        expect(await failure(all(rivulet.watch(run_id, { after: length + 1 })))).toMatchObject({
          status: 400,
          data: { reason: 'cursor_invalid' },
        });
      });

      it('is the same for all readers, and for a loop', async () => {
        const { run_id } = await rivulet.start('tokens', '200');
        const [first, ...others] = await Promise.all([1, 2, 3].map(() => all(rivulet.watch(run_id))));
        expect(others).toEqual([first, first]);
        const looped: Event[] = [];
        for await (const event of rivulet.watch(run_id)) looped.push(event);
        expect(looped).toEqual(first);
      });

      it('may end at a question, and goes on through it otherwise', async () => {
        const whole = reading(rivulet.run('asks-twice', 'go'), 'run.awaiting');
        await whole.there;
        const { run_id } = runIn(whole.seen[0]);
        const settled = await all(rivulet.watch(run_id, { until: 'settled' }));
        expect(settled.at(-1)?.type).toBe('run.awaiting');
        expect((await rivulet.resume(run_id, 'a')).status).toBe('in-progress');
        await all(rivulet.watch(run_id, { after: settled.length, until: 'settled' }));
        await rivulet.resume(run_id, { parts: [{ content: 'b' }] });
        await whole.over;
        expect(whole.seen.filter(({ type }) => type === 'run.awaiting')).toHaveLength(2);
        expect(textOf(runIn(whole.seen.at(-1)))).toBe('a,b');
      });

      it('is detached from by unsubscribing, and the run goes on', async () => {
        const { seen, there, subscription } = reading(rivulet.run('ask', 'go'), 'run.awaiting');
        await there;
        subscription.unsubscribe();
        const { run_id } = runIn(seen[0]);
        await rivulet.resume(run_id, 'yes');
        expect(textOf(await lastValueFrom(rivulet.watch(run_id).pipe(toRun())))).toBe('before. You said yes.');
      });

      it('ends the run where its last reader leaves and the run was to be cancelled then', async () => {
        gone = deferred();
        const options = { on_disconnect: 'cancel' } as const;
        const { seen, there, subscription } = reading(rivulet.run('held', 'go', options), 'run.in-progress');
        await there;
        subscription.unsubscribe();
        await gone.promise;
        const events = await all(rivulet.watch(runIn(seen[0]).run_id));
        expect(events.at(-1)?.type).toBe('run.cancelled');
        gone = deferred();
        for await (const { type } of rivulet.run('held', 'go', options)) if (type === 'run.in-progress') break;
        await gone.promise;
      });

      it('has no reader any more once its signal fires, also where a loop is busy with an event', async () => {
        gone = deferred();
        const controller = new AbortController();
        const events = rivulet.run('held', 'go', { on_disconnect: 'cancel', signal: controller.signal });
        for await (const { type } of events) {
          if (type !== 'run.in-progress') continue;
          controller.abort();
          await gone.promise;
          break;
        }
      });

      it('ends with the reason of a signal', async () => {
        const controller = new AbortController();
        const { there, over } = reading(rivulet.run('never', 'go', { signal: controller.signal }), 'run.in-progress');
        await there;
        controller.abort(new Error('enough'));
        await expect(over).rejects.toThrow('enough');
        await expect(rivulet.get(missing, { signal: controller.signal })).rejects.toThrow('enough');
        await expect(rivulet.sync('echo', 'a', { signal: controller.signal })).rejects.toThrow('enough');
      });
    });

    describe('an awaiting run', () => {
      it('is replied to once for an idempotency key', async () => {
        const { run_id } = await rivulet.sync('ask', 'go');
        const once = { idempotency_key: `reply of ${name}` };
        await rivulet.resume(run_id, 'yes', once);
        expect((await rivulet.resume(run_id, 'yes', once)).run_id).toBe(run_id);
        expect(textOf(await lastValueFrom(rivulet.watch(run_id).pipe(toRun())))).toBe('before. You said yes.');
      });

      it('is the only one that takes a reply', async () => {
        const { run_id } = await rivulet.sync('echo', 'a');
        expect(await failure(rivulet.resume(run_id, 'yes'))).toEqual({
          code: 'invalid_input',
          message: `Run ${run_id} is completed; only an awaiting run can be resumed.`,
          status: 409,
          data: { reason: 'not_awaiting' },
          retryable: false,
        });
      });
    });

    describe('running again', () => {
      it('makes a run with the same input, and is refused up to an event of an agent that is not durable', async () => {
        const { run_id } = await rivulet.sync('echo', 'hi');
        const again = await rivulet.again(run_id);
        expect(again.run_id).not.toBe(run_id);
        expect((await all(rivulet.watch(again.run_id))).at(-1)?.type).toBe('run.completed');
        expect((await rivulet.get(again.run_id)).output).toMatchObject([{ parts: [{ content: 'hi' }] }]);
        expect(await failure(rivulet.again(run_id, { after: 3 }))).toMatchObject({
          status: 409,
          data: { reason: 'not_repeatable' },
        });
        expect(await failure(rivulet.again(run_id, { after: -1 }))).toMatchObject({ status: 422 });
      });
    });

    describe('cancelling', () => {
      it('ends a run, which its readers see, and is refused for a final one', async () => {
        const { seen, there, over } = reading(rivulet.run('never', 'go'), 'run.in-progress');
        await there;
        const { run_id } = runIn(seen[0]);
        expect((await rivulet.cancel(run_id)).status).toBe('cancelling');
        await over;
        expect(seen.at(-1)?.type).toBe('run.cancelled');
        expect(await failure(rivulet.cancel(run_id))).toMatchObject({ status: 409, data: { reason: 'already_final' } });
      });
    });

    describe('a session', () => {
      it('has the history of its runs and the state that they stored, and is deleted', async () => {
        const session_id = uuid(3);
        await rivulet.sync('remembers', 'first', { session_id });
        await rivulet.sync('remembers', 'second', { session_id: session_id.toUpperCase() });
        const { id, history, state = '' } = await rivulet.session(session_id);
        expect(id).toBe(session_id);
        for (const url of [...history, state]) expect(url).toMatch(/^https?:\/\/.*\/resources\/[\da-f-]{36}$/);
        const said = await Promise.all(history.map((url) => rivulet.resource(url)));
        expect(said).toMatchObject([
          { role: 'user', parts: [{ content: 'first' }] },
          { role: 'agent/remembers', parts: [{ content: 'run 1' }] },
          { role: 'user', parts: [{ content: 'second' }] },
          { role: 'agent/remembers', parts: [{ content: 'run 2' }] },
        ]);
        expect(await rivulet.resource(state)).toBe(2);
        await rivulet.removeSession(session_id);
        expect(await failure(rivulet.session(session_id))).toMatchObject({ data: { reason: 'session_unknown' } });
      });

      it('that is busy refuses, queues or interrupts, as the call asks', async () => {
        const session_id = uuid(4);
        const { run_id } = await rivulet.start('never', 'go', { session_id });
        expect(await failure(rivulet.start('echo', 'a', { session_id, if_busy: 'reject' }))).toEqual({
          code: 'invalid_input',
          message: `Session ${session_id} is busy with run ${run_id}; wait for it, or send If-Busy: enqueue.`,
          status: 409,
          data: { reason: 'session_busy' },
          retryable: false,
        });
        const queued = await rivulet.start('echo', 'b', { session_id, if_busy: 'enqueue' });
        const last = await rivulet.sync('echo', 'c', { session_id, if_busy: 'interrupt' });
        expect(last.status).toBe('completed');
        expect((await rivulet.get(run_id)).status).toBe('cancelled');
        expect((await rivulet.get(queued.run_id)).status).toBe('cancelled');
        const { history } = await rivulet.session(session_id);
        expect(await rivulet.sync('echo', 'd', { session: { id: uuid(5), history } })).toMatchObject({
          session_id: uuid(5),
          status: 'completed',
        });
      });
    });

    describe('an error', () => {
      it('has the code, message, status and data of the protocol', async () => {
        const unknown = {
          code: 'not_found',
          message: 'There is no agent absent; GET /agents lists them.',
          status: 404,
          data: { reason: 'agent_unknown' },
          retryable: false,
        };
        expect(await failure(rivulet.agent('absent'))).toEqual(unknown);
        expect(await failure(rivulet.start('absent', 'a'))).toEqual(unknown);
        expect(await failure(rivulet.sync('absent', 'a'))).toEqual(unknown);
        expect(await failure(all(rivulet.run('absent', 'a')))).toEqual(unknown);
        expect(await failure(rivulet.start('echo', []))).toEqual({
          code: 'invalid_input',
          message: 'input: expected array length to be greater or equal to 1.',
          status: 422,
          data: { reason: 'validation_failed' },
          retryable: false,
        });
        expect(await failure(rivulet.get('no-uuid'))).toMatchObject({
          message: expect.stringMatching(/^path\.run_id: expected a UUID, .*, got "no-uuid"\.$/),
          status: 422,
        });
        expect(await failure(all(rivulet.watch(missing)))).toMatchObject({ status: 404 });
        for (const tool_input of ['{"__proto__":{"a":1}}', '{"constructor":{"prototype":1}}'].map((text) =>
          JSON.parse(text),
        ))
          expect(await failure(rivulet.start('echo', { metadata: { kind: 'trajectory', tool_input } }))).toMatchObject({
            status: 400,
            data: { reason: 'body_not_json' },
          });
        const harmless = [
          { content: '"__proto__":' },
          { metadata: { kind: 'trajectory' as const, tool_input: { constructor: 1 } } },
        ];
        expect(await rivulet.start('echo', harmless)).toMatchObject({ agent_name: 'echo' });
        expect(await failure(rivulet.get('..'))).toMatchObject({ status: 422, data: undefined });
      });
    });

    const atCursor = async (run_id: string, cursor: number): Promise<Run> =>
      lastValueFrom(rivulet.watch(run_id).pipe(take(cursor), toRun()));
  });
}
