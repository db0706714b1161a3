import { expect, it } from 'vitest';
import { agentFile, post, projectFolder, startRivulet } from './server-project.ts';

it('rivulet serve drains and exits with 1 after more than ten errors outside of runs within a minute', async (t) => {
  const body =
    '() => { for (let n = 0; n < 11; n += 1) setTimeout(() => { throw new Error("astray"); }); return "ok"; }';
  const folder = projectFolder({ 'agents/stray.js': agentFile('stray', body) }, t);
  const rivulet = startRivulet(folder, ['serve', '--port', '0', '--store', 'sqlite:./s.db'], t);
  const url = await rivulet.url();
  await post(`${url}/runs`, { agent_name: 'stray', mode: 'async', input: [{ parts: [{ content: 'hi' }] }] });
  expect(await rivulet.ended()).toBe(1);
  expect(rivulet.out).toContain('the server goes on');
  expect(rivulet.out).toContain('the server ends');
  expect(rivulet.out + rivulet.err).toContain('more than ten errors outside of runs within a minute');
  // The run is in the store: the server stopped as after SIGTERM.
  const again = startRivulet(folder, ['serve', '--port', '0', '--store', 'sqlite:./s.db'], t);
  const { runs } = await (await fetch(`${await again.url()}/runs`)).json();
  expect(runs).toMatchObject([{ agent_name: 'stray', status: 'completed' }]);
});
