import { createClient, toRun } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import { expect, it } from 'vitest';
import { RestartedServer } from './restarted-server.ts';

const pays = `async function* (_, { step, await: asks }) {
  for (const name of ['reserve', 'pay', 'confirm']) {
    yield await step(name, async () => {
      appendFileSync('done', name + '\\n');
      return name + ';';
    });
    if (name === 'pay') yield (await asks('Confirm?')).message.parts[0].content + ';';
  }
}`;

it('a run that repeats another one survives kill -9, and does no repeated step', async (t) => {
  const server = new RestartedServer(t, 'payer', pays, true);
  await server.start();
  const first = createClient({ url: server.url });
  const { run_id, await_request } = await first.sync('payer', 'go');
  expect(await_request).toBeDefined();
  // Up to the part of the first step: the second one is done again.
  const again = await first.again(run_id, { after: 4 });
  const asked = await lastValueFrom(first.watch(again.run_id, { until: 'settled' }));
  expect(asked.type).toBe('run.awaiting');
  await server.process.stop('SIGKILL');

  await server.start();
  const second = createClient({ url: server.url });
  for (const id of [run_id, again.run_id]) {
    await second.resume(id, 'yes');
    const { status, output } = await lastValueFrom(second.watch(id).pipe(toRun()));
    expect(status).toBe('completed');
    const said = output.flatMap(({ parts }) => parts.map(({ content }) => content)).join('');
    expect(said).toBe('reserve;pay;yes;confirm;');
  }
  expect(server.lines('done')).toEqual(['reserve', 'pay', 'pay', 'confirm', 'confirm']);
});
