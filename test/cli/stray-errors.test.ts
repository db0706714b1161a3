import { expect, it } from 'vitest';
import { StrayErrors } from '../../src/cli/stray-errors.ts';
import { agentFile, post, projectFolder, startRivulet } from './server-project.ts';

it('more than ten errors within a minute are too many, and any number over a long time is not', () => {
  const strays = new StrayErrors();
  const seconds = (count: number, first: number, step: number): boolean[] =>
    Array.from({ length: count }, (_, index) => strays.add((first + index * step) * 1_000));
  expect(seconds(30, 0, 7)).not.toContain(true);
  expect(seconds(10, 1_000, 1)).not.toContain(true);
  expect(seconds(1, 1_010, 1)).toEqual([true]);
  expect(strays.count).toBe(41);
});

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
