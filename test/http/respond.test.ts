import { EventEmitter } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { fail } from '../../src/core/errors.ts';
import { operator } from '../../src/core/principal.ts';
import { Responder } from '../../src/http/requests/respond.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { echo, never } from '../support/agents.ts';
import { engineOf } from '../support/engine.ts';
import { faulty, newPlan, type Plan } from '../support/faulty-store.ts';

/** A run that has ended, so that its events are read from a store. */
async function endedRun(plan: Plan) {
  const engine = await engineOf([echo], faulty(new MemoryStore(), plan));
  const access = engine.as(operator);
  const { run_id } = await engine.create({ agent_name: 'echo', input: [{ parts: [{ content: 'hi' }] }] });
  for await (const _ of await engine.stream(run_id));
  const cursor = await engine.openCursor(run_id);
  const end = vi.spyOn(cursor, 'close');
  return { access, run_id, cursor, end };
}

/** A run that goes on, and a cursor after its first event. */
async function openRun() {
  const engine = await engineOf([never]);
  const { run_id } = await engine.create({ agent_name: 'never', input: [{ parts: [{ content: 'hi' }] }] });
  return { run_id, cursor: await engine.openCursor(run_id, { after: 1 }) };
}

describe('a request that waits for a run', () => {
  const reply: never = { request: { hasTicket: true } } as never;

  it('closes its cursor at the end, and the stop of the server has nothing left to do', async () => {
    const { run_id, cursor, end } = await endedRun(newPlan());
    const access: never = { openCursor: async () => cursor, count: (text: string) => text } as never;
    const responder = new Responder({ monitor: { end() {} } } as never);
    expect(JSON.parse(await responder.collect(reply, access, run_id, {}))).toMatchObject({ status: 'completed' });
    expect(end).toHaveBeenCalled();
    end.mockClear();
    responder.stop();
    expect(end).not.toHaveBeenCalled();
  });

  it('gets the error of a read, and then closes its cursor', async () => {
    const plan = newPlan();
    const { run_id, cursor, end } = await endedRun(plan);
    plan.faults = { events: { fails: (plan.calls.events ?? 0) + 1, error: fail('log_removed', run_id) } };
    const access: never = { openCursor: async () => cursor, count: (text: string) => text } as never;
    const responder = new Responder({ monitor: { end() {} } } as never);
    await expect(responder.collect(reply, access, run_id, {})).rejects.toMatchObject({ kind: 'log_removed' });
    expect(end).toHaveBeenCalled();
    end.mockClear();
    responder.stop();
    expect(end).not.toHaveBeenCalled();
  });
});

it('a client that waits for a run to grow leaves no cursor open where the server has stopped meanwhile', async () => {
  const { run_id, cursor } = await openRun();
  const responder = new Responder({ monitor: { end() {} } } as never);
  const access = {
    openCursor: async () => {
      responder.stop();
      return cursor;
    },
  };
  const request = { hasTicket: true, raw: { socket: new EventEmitter() } };
  const reply: never = { request, raw: new EventEmitter() } as never;
  await responder.grown(60_000, reply, access as never, run_id, 1);
  expect(cursor.ended).toBe(true);
});

it('a protocol that cannot read what its client has already leaves no cursor open', async () => {
  const { run_id, cursor } = await openRun();
  const failing = async (): Promise<never> => {
    throw fail('log_removed', run_id);
  };
  const access: never = { openCursor: async () => cursor, stream: failing } as never;
  const responder = new Responder({ monitor: { end() {} } } as never);
  const reply: never = { request: { hasTicket: true } } as never;
  const settled = responder.settledState(reply, access, run_id, { start: () => 0 } as never, { after: 1 });
  await expect(settled).rejects.toMatchObject({ kind: 'log_removed' });
  expect(cursor.ended).toBe(true);
});

it('a client that waits for a run of the store, and counts as its reader, reads its row once', async () => {
  const plan = newPlan();
  const { access, run_id } = await endedRun(plan);
  const before = plan.calls.run ?? 0;
  const responder = new Responder({ monitor: { end() {} } } as never);
  await responder.collect({ request: { hasTicket: false } } as never, access, run_id, {});
  expect((plan.calls.run ?? 0) - before).toBe(1);
});

describe('a cursor that is followed', () => {
  it('ends once, with what its reader threw, and is closed then', async () => {
    const { cursor, end } = await endedRun(newPlan());
    const thrown = new Error('of the reader');
    const ends: unknown[] = [];
    await new Promise<void>((resolve) => {
      const onEnd = (error?: unknown): void => {
        ends.push(error);
        resolve();
      };
      cursor.follow(() => {
        throw thrown;
      }, onEnd);
    });
    expect(ends).toEqual([thrown]);
    expect(end).toHaveBeenCalled();
    cursor.close();
    expect(ends).toEqual([thrown]);
  });
});
