// `npm start`, as a newcomer types it: up, one stream, down.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const child = spawn('npm', ['start', '--', '--port', '0', '--store', 'memory:'], {
  stdio: ['ignore', 'pipe', 'inherit'],
  detached: true,
});
const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), 240_000);
let out = '';
let url;
for await (const chunk of child.stdout.setEncoding('utf8')) {
  out += chunk;
  url = /listening at (http:\S+)/.exec(out)?.[1];
  if (url && out.includes('curl')) break;
}
if (!url) throw new Error(`npm start did not come up:\n${out}`);
const response = await fetch(`${url}/runs`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ agent_name: 'echo', mode: 'stream', input: [{ parts: [{ content: 'Hello' }] }] }),
});
if (!(await response.text()).includes('run.completed')) throw new Error('echo did not complete');
process.kill(-child.pid, 'SIGTERM');
await once(child, 'exit');
clearTimeout(timer);
console.log(`npm start came up at ${url} and went down again`);
