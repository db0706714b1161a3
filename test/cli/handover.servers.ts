import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeProject } from '../support/project.ts';
import { framesUntil } from '../support/serve.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { createRun, getJson, startRivulet } from './server-project.ts';

const head = `
import { appendFileSync, existsSync, watch } from 'node:fs';
import { defineAgent } from 'rivulet';
import { concat, defer, ignoreElements, map, merge, Observable, of } from 'rxjs';

/** Writes that the node of this process begins to work, and completes when the test has created the file. */
const work = (name, file) => defer(() => {
  appendFileSync(name, process.pid + '\\n');
  return new Observable((subscriber) => {
    const look = () => existsSync(file) && subscriber.complete();
    const watching = watch('.', look);
    look();
    return () => watching.close();
  });
});
const then = (text, source) => concat(source, of(text));
const agent = (name, run) => defineAgent({ name, description: 'A ' + name + '.' }, run, { durable: true });
const asks = (context) => context.await('Go on?').pipe(ignoreElements());
`;

const agentFiles = {
  'agents/canary.js': `${head}
export default agent('canary', (_, context) => context.step('work', () => work('canary', 'go-canary')));`,
  'agents/beside-step.js': `${head}
export default agent('beside-step', (_, context) =>
  merge(asks(context), context.step('work', () => then('worked', work('work', 'go-step')))));`,
  'agents/called.js': `${head}
export default agent('called', () => then('called', work('call', 'go-call')));`,
  'agents/beside-call.js': `${head}
export default agent('beside-call', (_, context) => merge(asks(context), context.call('called', 'go')));`,
  'agents/between.js': `${head}
export default agent('between', (_, context) => merge(asks(context), concat(
  context.step('one', () => work('one', 'go-one')),
  defer(() => context.step('two', () => then('two', work('two', 'go-two')))))));`,
};

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`runs that ask beside other work, with a store in ${name}`, () => {
    afterAll(() => place?.remove());

    /** A node of the store, in the same folder as the others. */
    const nodesOf = () => {
      const { folder, remove } = makeProject(agentFiles);
      onTestFinished(remove);
      const path = (file: string) => join(folder, file);
      const args = ['serve', '--port', '0', '--store', place?.url ?? '', '--limit', 'lease=1000'];
      const start = async (...limits: string[]) => {
        const node = startRivulet(folder, [...args, ...limits.flatMap((limit) => ['--limit', limit])]);
        return { node, url: await node.url(), pid: String(node.child.pid) };
      };
      const begun = (file: string) =>
        existsSync(path(file)) ? readFileSync(path(file), 'utf8').trim().split('\n') : [];
      return { start, begun, go: (file: string) => writeFileSync(path(file), '') };
    };
    const emits = async (url: string, run_id: string, text: string): Promise<void> => {
      const stream = await fetch(`${url}/runs/${run_id}/events`, { headers: { accept: 'text/event-stream' } });
      await framesUntil(stream, ({ event }) => event.type === 'message.part' && event.part.content === text);
      expect((await getJson(`${url}/runs/${run_id}`)).status).toBe('awaiting');
    };

    it('go on elsewhere without a reply, as soon as the steps of their stopping node have ended and not before', async () => {
      const { start, begun, go } = nodesOf();
      // With one slot, it takes the canary only.
      const killed = await start('running=1');
      await createRun(killed.url, 'canary', { mode: 'async' });
      await eventually(() => expect(begun('canary')).toEqual([killed.pid]));
      const stopping = await start('shutdownGrace=600000');
      const between = await createRun(stopping.url, 'between');
      const besideCall = await createRun(stopping.url, 'beside-call');
      expect([between.status, besideCall.status]).toEqual(['awaiting', 'awaiting']);
      await eventually(() => expect([begun('one'), begun('call')]).toEqual([[stopping.pid], [stopping.pid]]));
      const heir = await start();

      stopping.node.child.kill('SIGTERM');
      killed.node.child.kill('SIGKILL');
      // A call of an agent without steps goes on at once.
      await eventually(() => expect(begun('call')).toEqual([stopping.pid, heir.pid]));
      go('go-call');
      await emits(heir.url, besideCall.run_id, 'called');
      // More than a lease has passed when the run of the killed node is re-entered.
      await eventually(() => expect(begun('canary')).toEqual([killed.pid, heir.pid]));
      expect(begun('one')).toEqual([stopping.pid]);
      go('go-one');
      await eventually(() => expect(begun('two')).toEqual([heir.pid]));
      expect(begun('one')).toEqual([stopping.pid]);
      expect(await stopping.node.ended()).toBe(0);
      go('go-two');
      await emits(heir.url, between.run_id, 'two');
    });

    it('repeat elsewhere, without a reply, a step that took longer than `shutdownGrace`', async () => {
      const { start, begun, go } = nodesOf();
      const stopping = await start('shutdownGrace=100');
      const { run_id } = await createRun(stopping.url, 'beside-step');
      await eventually(() => expect(begun('work')).toEqual([stopping.pid]));
      const heir = await start();
      expect(await stopping.node.stop()).toBe(0);
      await eventually(() => expect(begun('work')).toEqual([stopping.pid, heir.pid]));
      go('go-step');
      await emits(heir.url, run_id, 'worked');
    });
  });
}
