import { expect, it } from 'vitest';
import { rivuletHere } from '../support/command.ts';
import { agentFile, projectFolder, startRivulet } from './server-project.ts';

it('rivulet doctor checks the store and the address of a server that runs', async (t) => {
  const cwd = projectFolder({ 'agents/a.js': agentFile('a') }, t);
  const url = await startRivulet(cwd, ['serve', '--port', '0'], t).url();
  const { code, out } = await rivuletHere(['doctor', '--port', new URL(url).port], { cwd });
  expect(out).toMatch(/note +address +127\.0\.0\.1:\d+ has a server that answers \/health\n/);
  expect(out).toMatch(/ok +store +sqlite:\.\/data\/rivulet\.db: version \d+\n/);
  expect(code).toBe(0);
});
