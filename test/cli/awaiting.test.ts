import { join } from 'node:path';
import { map } from 'rxjs';
import { expect, it } from 'vitest';
import { defineAgent, type Run } from '../../src/index.ts';
import { newFolder } from '../support/folder.ts';
import { ask, listen, type Served, textOf } from '../support/serve.ts';

const asks = defineAgent(
  { name: 'asks', description: 'Asks.' },
  (_, context) => context.await('Shall I?').pipe(map(({ message }) => `You said ${message.parts[0]?.content}`)),
  { durable: true },
);

// awaiting.servers.ts does the same with processes and more runs, and measures their memory.
it('keeps awaiting runs on disk, where the next server finds and resumes them', async ({ onTestFinished }) => {
  const folder = newFolder(onTestFinished);
  const limits = { passivateAfter: 1, sweepInterval: 100 };
  const start = () => listen([asks], { store: `sqlite:${join(folder, 'awaiting.db')}`, limits });
  const answer = (served: Served, run_id = ''): Promise<Response> =>
    served.post(`/runs/${run_id}`, {
      mode: 'sync',
      await_resume: { type: 'message', message: { parts: [{ content: `yes, ${run_id}` }] } },
    });
  const answerAll = async (served: Served, ids: string[]): Promise<void> => {
    for (const run_id of ids) {
      const run: Run = await (await answer(served, run_id)).json();
      expect([run.status, textOf(run)]).toEqual(['completed', `You said yes, ${run_id}`]);
    }
  };

  const first = await start();
  const ids: string[] = [];
  for (let n = 0; n < 20; n += 1) ids.push((await (await first.post('/runs', ask('asks'))).json()).run_id);
  await answerAll(first, ids.slice(0, 5));
  await first.app.close();

  const second = await start();
  onTestFinished(() => second.app.close());
  await answerAll(second, ids.slice(5, 10));
  const { runs }: { runs: Run[] } = await (await second.get('/runs?status=awaiting')).json();
  expect(runs.map(({ run_id }) => run_id)).toEqual(ids.slice(10).reverse());
  const late = await answer(second, ids[0]);
  expect([late.status, (await late.json()).message]).toEqual([
    409,
    expect.stringContaining('only an awaiting run can be resumed'),
  ]);
});
