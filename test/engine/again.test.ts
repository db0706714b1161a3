import { createRuntime, type Event } from 'rivulet';
import { lastValueFrom, toArray } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/core/agent.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { agent, durable } from '../support/agents.ts';
import { nodes } from '../support/nodes.ts';
import { ask, eventsOf as eventsAt, finished, serveApi } from '../support/serve.ts';

const runtimeOf = async (agents: Agent[], store = new MemoryStore()) => {
  const runtime = await createRuntime({ agents, store, captureContent: true });
  onTestFinished(() => runtime.close());
  return runtime;
};

type Runtime = Awaited<ReturnType<typeof runtimeOf>>;

const eventsOf = (runtime: Runtime, run_id: string): Promise<Event[]> =>
  lastValueFrom(runtime.watch(run_id, { until: 'settled' }).pipe(toArray()));

const textOf = (events: readonly Event[]): string =>
  events.map((event) => (event.type === 'message.part' ? event.part.content : '')).join('');

/** The number of the event that has this text, counted from 1. */
const eventWith = (events: readonly Event[], content: string): number =>
  events.findIndex((event) => event.type === 'message.part' && event.part.content === content) + 1;

/** An agent of three steps with a part after each; `did` has what was done. */
function worker(did: string[]): Agent {
  return durable('worker', async function* (input, { step }) {
    for (const name of ['a', 'b', 'c']) {
      const value = await step(name, async () => {
        did.push(name);
        return `${name}${did.length}`;
      });
      yield `${input[0]?.parts[0]?.content} ${value};`;
    }
  });
}

describe('a run that repeats another one', () => {
  it('has its events up to one, and does only the steps after that', async () => {
    const did: string[] = [];
    const runtime = await runtimeOf([worker(did)]);
    const first = await runtime.sync('worker', 'go');
    const events = await eventsOf(runtime, first.run_id);
    expect(textOf(events)).toBe('go a1;go b2;go c3;');
    did.length = 0;
    const after = eventWith(events, 'go a1;');
    const { run_id, session_id } = await runtime.again(first.run_id, { after });
    const repeated = await eventsOf(runtime, run_id);
    expect(did).toEqual(['b', 'c']);
    expect(textOf(repeated)).toBe('go a1;go b1;go c2;');
    expect(repeated.slice(2, after)).toEqual(events.slice(2, after));
    expect(session_id).not.toBe(first.session_id);
    const run = await runtime.get(run_id);
    expect(run).toMatchObject({ run_id, status: 'completed', input: [{ parts: [{ content: 'go' }] }] });
    for (const event of repeated) if ('run' in event) expect(event.run).toMatchObject({ run_id, session_id });
    expect((await runtime.get(first.run_id)).status).toBe('completed');
  });

  it('begins anew with the same input, where no event is named', async () => {
    const did: string[] = [];
    const runtime = await runtimeOf([worker(did), agent('plain', (input) => `${input[0]?.parts[0]?.content}!`)]);
    const first = await runtime.sync('worker', 'go');
    const again = await runtime.again(first.run_id);
    expect(again).toMatchObject({ status: 'created', output: [] });
    await eventsOf(runtime, again.run_id);
    expect(did).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
    const plain = await runtime.again((await runtime.sync('plain', 'hi')).run_id, { after: 1 });
    expect(textOf(await eventsOf(runtime, plain.run_id))).toBe('hi!');
  });

  it('goes on in the middle of the values of a step, as after a crash', async () => {
    let works = 0;
    const streamer = durable('streamer', (_, { step }) =>
      step('words', async function* () {
        works += 1;
        for (const word of ['one ', 'two ', 'three ']) {
          yield word;
          await new Promise(setImmediate);
          await new Promise(setImmediate);
        }
      }),
    );
    const runtime = await runtimeOf([streamer]);
    const { run_id } = await runtime.sync('streamer', 'go');
    const events = await eventsOf(runtime, run_id);
    const again = await runtime.again(run_id, { after: eventWith(events, 'two ') });
    expect(textOf(await eventsOf(runtime, again.run_id))).toBe('one two three ');
    expect(works).toBe(2);
  });

  it('asks an open question again, and takes a reply of its own', async () => {
    const asker = durable('asker', async function* (_, own) {
      yield 'before;';
      const { message } = await own.await('Well?', { expiresIn: 60_000 });
      const said = await own.step('look', async () => message.parts[0]?.content);
      yield `${said};`;
    });
    const runtime = await runtimeOf([asker]);
    const first = await runtime.sync('asker', 'go');
    const asked = await eventsOf(runtime, first.run_id);
    const again = await runtime.again(first.run_id, { after: asked.length });
    expect(again).toMatchObject({ status: 'awaiting', await_request: { id: '1' } });
    expect(Date.parse(again.await_request?.expires_at ?? '')).toBeGreaterThan(Date.now());
    await runtime.resume(first.run_id, 'no');
    await runtime.resume(again.run_id, 'yes');
    const texts = async (run_id: string) => textOf(await lastValueFrom(runtime.watch(run_id).pipe(toArray())));
    expect(await texts(first.run_id)).toBe('before;no;');
    expect(await texts(again.run_id)).toBe('before;yes;');
    // After the reply, which is repeated as well.
    const replied = await runtime.again(first.run_id, { after: asked.length + 1 });
    expect(await texts(replied.run_id)).toBe('before;no;');
    const before = await runtime.again(first.run_id, { after: asked.length - 1 });
    await eventsOf(runtime, before.run_id);
    expect(await runtime.get(before.run_id)).toMatchObject({ status: 'awaiting', await_request: { id: '1' } });
  });

  it('does the step again whose error has ended the first run, and no step before it', async () => {
    const did: string[] = [];
    let broken = true;
    const failing = durable('failing', async function* (_, { step }) {
      yield await step('good', async () => {
        did.push('good');
        return 'good;';
      });
      yield await step('bad', async () => {
        did.push('bad');
        if (broken) throw new Error('The disk is full.');
        return 'bad;';
      });
    });
    const runtime = await runtimeOf([failing]);
    const first = await runtime.sync('failing', 'go');
    expect(first.status).toBe('failed');
    const { length } = await eventsOf(runtime, first.run_id);
    broken = false;
    const again = await runtime.again(first.run_id, { after: length });
    expect(textOf(await eventsOf(runtime, again.run_id))).toBe('good;bad;');
    expect(did).toEqual(['good', 'bad', 'bad']);
  });

  it('does the steps again whose error has ended the first run, where the last of them began in the work of the others', async () => {
    const did: string[] = [];
    let broken = true;
    const helper = durable('helper', async (_, { step }) =>
      step('bad', async () => {
        did.push('bad');
        if (broken) throw new Error('The disk is full.');
        return 'bad;';
      }),
    );
    const failing = durable('failing', async function* (_, { step, call, usage }) {
      yield await step('outer', async () => {
        const tried = step('caught', () => Promise.reject(did.push('caught')));
        const caught = await tried.then(String, () => 'caught;');
        const good = await step('good', async () => `good ${did.push('good')};`);
        return step('inner', async () => {
          usage({ tokens: 1 });
          const { parts } = await call('helper', 'go');
          return `${caught}${good}${parts[0]?.content}`;
        });
      });
    });
    const runtime = await runtimeOf([failing, helper]);
    const first = await runtime.sync('failing', 'go');
    expect(first.status).toBe('failed');
    const { length } = await eventsOf(runtime, first.run_id);
    broken = false;
    const again = await runtime.again(first.run_id, { after: length });
    expect(textOf(await eventsOf(runtime, again.run_id))).toBe('caught;good 2;bad;');
    expect(did).toEqual(['caught', 'good', 'bad', 'bad']);
  });

  it('goes on with what a cancelled run had done before its cancel', async () => {
    let waits = true;
    const waiter = durable('waiter', async function* (_, { step, cleanup, signal }) {
      try {
        yield await step('first', async () => 'first;');
        if (waits) await new Promise((_, reject) => signal.addEventListener('abort', reject));
        yield 'second;';
      } finally {
        await cleanup('undo', async () => 'undone');
      }
    });
    const runtime = await runtimeOf([waiter]);
    const { run_id } = await runtime.start('waiter', 'go');
    const events: Event[] = [];
    await new Promise<void>((resolve) =>
      runtime.watch(run_id).subscribe((event) => {
        events.push(event);
        if (event.type === 'message.part') void runtime.cancel(run_id);
        if (event.type === 'run.cancelled') resolve();
      }),
    );
    waits = false;
    const again = await runtime.again(run_id, { after: events.length });
    expect(textOf(await eventsOf(runtime, again.run_id))).toBe('first;second;');
  });

  it('has the history and the state of the session, in a session of its own', async () => {
    const chat = durable('chat', async function* (input, { session, step }) {
      const before: string[] = [];
      for (const { parts } of await lastValueFrom(session.history.pipe(toArray())))
        before.push(parts.map(({ content }) => content).join(''));
      const turns = ((await session.state<number>()) ?? 0) + 1;
      await session.setState(turns);
      yield `${input[0]?.parts[0]?.content} after [${before.join()}], turn ${turns};`;
      yield await step('more', async () => 'more');
    });
    const runtime = await runtimeOf([chat]);
    const one = await runtime.sync('chat', 'one');
    const session_id = one.session_id ?? '';
    const two = await runtime.sync('chat', 'two', { session_id });
    await runtime.sync('chat', 'three', { session_id });
    const history = (await runtime.session(session_id)).history;
    const events = await eventsOf(runtime, two.run_id);
    const answer = 'two after [one,one after [], turn 1;more], turn 2;';
    const again = await runtime.again(two.run_id, { after: eventWith(events, answer) });
    expect(textOf(await eventsOf(runtime, again.run_id))).toBe(`${answer}more`);
    // From the beginning: the same turns are before it, and the state is the newest.
    const anew = await runtime.again(two.run_id);
    expect(textOf(await eventsOf(runtime, anew.run_id))).toBe(`${answer.replace('turn 2', 'turn 4')}more`);
    expect((await runtime.session(session_id)).history).toEqual(history);
    expect((await runtime.session(anew.session_id ?? '')).history).toHaveLength(4);
  });

  it('leaves out the messages that the first run could not read either', async () => {
    const store = new MemoryStore();
    const counter = durable('counter', async (_, { session }) =>
      String((await lastValueFrom(session.history.pipe(toArray()))).length),
    );
    const runtime = await runtimeOf([counter], store);
    const session = { id: '0b8f4d9e-7a55-4d0c-9b6f-1f2e3d4c5b6a', history: ['http://127.0.0.1:9/resources/gone'] };
    const failed = await runtime.sync('counter', 'one', { session });
    expect(failed).toMatchObject({ status: 'failed', error: { data: { reason: 'resource_refused' } } });
    const second = await runtime.sync('counter', 'two', { session_id: session.id });
    const again = await runtime.again(second.run_id);
    // What the user said in the first run, and that it has failed.
    expect(textOf(await eventsOf(runtime, again.run_id))).toBe('2');
    // The request of the first run has named that message, so its repetition fails likewise.
    const same = await runtime.again(failed.run_id);
    await lastValueFrom(runtime.watch(same.run_id, { onFailed: 'end' }).pipe(toArray()));
    expect((await runtime.get(same.run_id)).status).toBe('failed');
  });

  it('goes on after its own process has died, and repeats no line of the first run twice', async () => {
    const store = new MemoryStore();
    const did: string[] = [];
    const asker = durable('asker', async function* (_, own) {
      own.log.info('begins');
      yield `${await own.step('a', async () => did.push('a'))};`;
      yield `${(await own.await('Well?')).message.parts[0]?.content};`;
    });
    const runtime = await createRuntime({ agents: [asker], store, captureContent: true });
    const first = await runtime.sync('asker', 'go');
    const { length } = await eventsOf(runtime, first.run_id);
    const { run_id } = await runtime.again(first.run_id, { after: length });
    await runtime.close();
    const second = await runtimeOf([asker], store);
    await second.resume(run_id, 'yes');
    expect(textOf(await lastValueFrom(second.watch(run_id).pipe(toArray())))).toBe('1;yes;');
    expect(did).toEqual(['a']);
    expect((await second.diagnostics(run_id)).diagnostics).toEqual([]);
  });

  it('works on another node than the one that got the request', async () => {
    const did: string[] = [];
    const { node, queue } = nodes([worker(did)]);
    const [a, b] = [await node('a'), await node('b')];
    queue.next = 'a';
    const first = await (await a.post('/runs', ask('worker', 'go'))).json();
    queue.next = 'b';
    const again = await (await a.post(`/runs/${first.run_id}/again`, { after: 4 })).json();
    expect((await finished(a, again.run_id)).status).toBe('completed');
    expect(did).toEqual(['a', 'b', 'c', 'b', 'c']);
    expect(await eventsAt(a, again.run_id)).toEqual(await eventsAt(b, again.run_id));
  });

  it('is one run for requests with the same Idempotency-Key', async () => {
    const runtime = await runtimeOf([worker([])]);
    const first = await runtime.sync('worker', 'go');
    const options = { after: 4, idempotency_key: 'once' };
    const again = await runtime.again(first.run_id, options);
    expect((await runtime.again(first.run_id, options)).run_id).toBe(again.run_id);
    await expect(runtime.again(first.run_id, { ...options, after: 3 })).rejects.toMatchObject({
      data: { reason: 'idempotency_key_reused' },
    });
  });

  it('is refused after an event that is not there, and for an agent that is not durable', async () => {
    const { post } = await serveApi([worker([]), agent('plain', () => 'hi')]);
    const { run_id } = await (await post('/runs', ask('worker'))).json();
    const beyond = await post(`/runs/${run_id}/again`, { after: 99 });
    expect([beyond.status, await beyond.json()]).toMatchObject([422, { data: { reason: 'validation_failed' } }]);
    const plain = await (await post('/runs', ask('plain'))).json();
    const refused = await post(`/runs/${plain.run_id}/again`, { after: 3 });
    expect([refused.status, await refused.json()]).toMatchObject([409, { data: { reason: 'not_repeatable' } }]);
    const begun = await post(`/runs/${plain.run_id}/again`, {});
    expect(begun.status).toBe(202);
    const run = await begun.json();
    expect(begun.headers.get('location')).toBe(`/runs/${run.run_id}`);
    expect(begun.headers.get('run-id')).toBe(run.run_id);
  });

  it('is for callers that own the first run, may write, and may run its agent', async () => {
    const scopes = ['runs:read', 'runs:write'];
    const callers = {
      alice: { id: 'alice', scopes },
      bob: { id: 'bob', scopes },
      root: { id: 'root', scopes: [...scopes, 'admin'] },
      reader: { id: 'reader', tenant: 'alice', scopes: ['runs:read'] },
    };
    const { post } = await serveApi([worker([])], {
      auth: { authenticate: ({ headers: { caller } }) => callers[caller as keyof typeof callers] },
    });
    const { run_id } = await (await post('/runs', ask('worker'), { caller: 'alice' })).json();
    const answer = async (caller: string) => {
      const response = await post(`/runs/${run_id}/again`, { after: 4 }, { caller });
      return [response.status, (await response.json()).data?.reason];
    };
    expect(await answer('alice')).toEqual([202, undefined]);
    expect(await answer('bob')).toEqual([404, 'run_unknown']);
    expect(await answer('root')).toEqual([403, 'owner_differs']);
    expect(await answer('reader')).toEqual([403, 'scope_missing']);
  });
});
