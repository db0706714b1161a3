import { spawn } from 'node:child_process';
import { resolve } from 'node:path';

// `npm run bench:startup -- OTHER [ROUNDS]`: how long the server of this checkout and that of another one, both built, take
// until they listen; alternating, with the agents of this repository, in memory.

const [other, rounds = '11'] = process.argv.slice(2);
if (other === undefined) throw new Error('expected the folder of another checkout that is built');

/** Milliseconds until a server prints its greeting. */
async function startOf(folder: string): Promise<number> {
  const begun = performance.now();
  const args = [resolve(folder, 'dist/cli/main.js'), 'serve', '--port', '0', '--store', 'memory:', 'agents'];
  const server = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = new Promise<void>((done) => server.on('close', () => done()));
  let text = '';
  for await (const chunk of server.stdout) {
    text += chunk;
    if (text.includes('is listening')) break;
  }
  const taken = performance.now() - begun;
  server.kill();
  await closed;
  return taken;
}

const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN;

const [here, there]: [number[], number[]] = [[], []];
for (let round = 0; round < Number(rounds); round += 1) {
  there.push(await startOf(other));
  here.push(await startOf('.'));
}
const ratio = median(here) / median(there);
console.log(`this ${median(here).toFixed(0)} ms, other ${median(there).toFixed(0)} ms, ratio ${ratio.toFixed(2)}`);
