import { text } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import { expect, it } from 'vitest';
import { agentFile } from './server-project.ts';
import { watchedProject } from './watched-project.ts';

// watch-agents.servers.ts has more tests.
it('rivulet serve --watch runs new code in new runs, and the old code in runs that have started', async (t) => {
  const project = await watchedProject(t, {
    'agents/slow.ts': agentFile(
      'slow',
      "async function* (_, context) { yield 'old '; await context.await('Go?').forEach(() => {}); yield 'old'; }",
    ),
  });
  const { client } = project;
  const started = await client.sync('slow', 'x');
  project.write('agents/slow.ts', agentFile('slow', "() => 'new'"));
  await project.printed('agents/slow.ts has changed');
  expect(await project.ask('slow')).toBe('new');
  await client.resume(started.run_id, 'go');
  expect(await lastValueFrom(client.watch(started.run_id).pipe(text()))).toBe('old \n\nold');
});
