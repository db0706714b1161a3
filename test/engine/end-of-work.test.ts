import { setTimeout } from 'node:timers/promises';
import { defineAgent, EndOfWork } from 'rivulet';
import { createClient } from 'rivulet/client';
import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { agent } from '../support/agents.ts';
import { nodes } from '../support/nodes.ts';
import { ask, listen, serveApi, textOf } from '../support/serve.ts';
import { warningsOfNode } from '../support/warnings.ts';

/** An agent that never ends, and what its signal said. */
function listening(durable: boolean) {
  const continued: unknown[] = [];
  let begun = 0;
  const agent = defineAgent(
    { name: 'listening', description: 'Listens.' },
    (_, { signal }) => {
      begun += 1;
      signal.addEventListener('abort', async () => {
        continued.push(signal.reason instanceof EndOfWork && (await signal.reason.continues));
      });
      return NEVER;
    },
    { durable },
  );
  return { agent, continued, whenBegun: () => expect.poll(() => begun).toBe(1) };
}

describe('the reason of a signal', () => {
  it.each([true, false])('says that a cancelled run does not go on; durable: %s', async (durable) => {
    const { agent, continued, whenBegun } = listening(durable);
    const client = createClient({ url: (await serveApi([agent])).url });
    const { run_id } = await client.start('listening', 'Go');
    await whenBegun();
    await client.cancel(run_id);
    await expect.poll(() => continued).toEqual([false]);
  });

  it.each([true, false])('says whether the run goes on after the server has stopped: %s', async (durable) => {
    const { agent, continued, whenBegun } = listening(durable);
    const { app, url } = await listen([agent]);
    await createClient({ url }).start('listening', 'Go');
    await whenBegun();
    await app.close();
    await expect.poll(() => continued).toEqual([durable]);
  });

  it('says that a run which another node has cancelled does not go on', async () => {
    const { agent, continued, whenBegun } = listening(true);
    const { node, queue } = nodes([agent]);
    const [a] = [await node('a'), await node('b')];
    queue.next = 'b';
    const client = createClient({ url: a.url });
    const { run_id } = await client.start('listening', 'Go');
    await whenBegun();
    await client.cancel(run_id);
    await expect.poll(() => continued).toEqual([false]);
  });
});

it('lets an agent have more than ten requests under way with its signal, without a warning', async () => {
  const warnings = warningsOfNode();
  const busy = agent('busy', async (_, { signal }) => {
    await Promise.all(Array.from({ length: 20 }, () => setTimeout(1, undefined, { signal })));
    return 'done';
  });
  const served = await serveApi([busy]);
  expect(textOf(await (await served.post('/runs', ask('busy'))).json())).toBe('done');
  expect(await warnings()).toEqual([]);
});
