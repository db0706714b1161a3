import { beforeEach, describe, expect, it } from 'vitest';
import { operator } from '../../../src/core/principal.ts';
import type { Access } from '../../../src/engine/access.ts';
import type { ChangeEvent } from '../../../src/engine/changes/change-reader.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import { taskFrames } from '../../../src/protocols/mcp/subscriptions.ts';
import { never } from '../../support/agents.ts';
import { engineOf } from '../../support/engine.ts';

let engine: Engine;
let own: Access;
beforeEach(async () => {
  engine = await engineOf([never]);
  own = engine.as(operator);
});

const begin = async (): Promise<string> =>
  (await own.create({ agent_name: 'never', input: [{ role: 'user', parts: [{ content: '' }] }] })).run_id;

/** Cancels a run, and waits for its end. */
async function end(run_id: string): Promise<void> {
  await own.cancel(run_id);
  for await (const _ of await own.stream(run_id));
}

const ready: ChangeEvent = { type: 'ready', data: '{}', position: 1 };
const changeOf = (run_id: string): ChangeEvent => ({ type: 'run', data: JSON.stringify({ run: { run_id } }) });

/** The messages of a subscription to tasks, whose feed of runs gives these batches. */
async function* messagesOf(taskIds: readonly string[], feed: AsyncIterable<readonly ChangeEvent[]>) {
  for await (const frames of taskFrames({ own, id: 1, taskIds, serverInfo: {} }, feed)) {
    yield frames.map((frame) => JSON.parse(frame.slice('data: '.length)));
  }
}

/** What a message says, in short. */
const said = ({ method, params, result }: Record<string, Record<string, unknown>>): unknown =>
  params?.status ?? result?.resultType ?? method;

describe('a subscription to tasks', () => {
  it('reads their states where the feed of runs begins anew: changes may have been missed', async () => {
    const [one, two] = [await begin(), await begin()];
    const feed = async function* () {
      yield [ready];
      await end(one);
      yield [{ type: 'reset', data: '{}', position: 0 }, ready] as const;
      await end(two);
      yield [ready];
    };
    const told: unknown[] = [];
    for await (const messages of messagesOf([one, two], feed())) told.push(messages.map(said));
    expect(told).toEqual([
      ['notifications/subscriptions/acknowledged'],
      ['working'],
      ['working'],
      ['cancelled'],
      ['cancelled'],
      ['complete'],
    ]);
  });

  it('ends, although one was removed before its end was read', async () => {
    const [one, two] = [await begin(), await begin()];
    const feed = async function* () {
      yield [ready];
      await end(one);
      await own.remove(one);
      yield [changeOf(one)];
      await end(two);
      await own.remove(two);
      yield [ready];
      throw new Error('It went on after its last task.');
    };
    const told: unknown[] = [];
    for await (const messages of messagesOf([one, two], feed())) told.push(messages.map(said));
    expect(told).toEqual([['notifications/subscriptions/acknowledged'], ['working'], ['working'], ['complete']]);
  });
});
