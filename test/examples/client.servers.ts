import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text as textIn } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { echo } from '../support/agents.ts';
import { serve } from '../support/serve.ts';

it('examples/client.ts, as a script, says that the run awaits a reply when its input is closed, before or at the question', async () => {
  const { url } = await serve([approve]);
  for (const atQuestion of [false, true]) {
    const script = spawn(process.execPath, ['--import', 'tsx', 'examples/client.ts', url, 'approve', 'dance']);
    const err = textIn(script.stderr);
    if (atQuestion) await once(script.stdout, 'data');
    script.stdin.end();
    expect(await once(script, 'exit')).toEqual([1, null]);
    expect(await err).toMatch(/There is no more input; the run awaits a reply\.\n$/);
  }
});

it('examples/client.ts, as a script, prompts on the terminal and exits with the status of the run', async () => {
  const { url } = await serve([approve, echo]);
  const script = spawn(process.execPath, ['--import', 'tsx', 'examples/client.ts', url, 'approve', 'dance']);
  const [out, err] = [textIn(script.stdout), textIn(script.stderr)];
  // The question is its first output on stderr.
  await once(script.stderr, 'data');
  script.stdin.end('no\n');
  const [code] = await once(script, 'exit');
  expect(await out).toBe('I am about to do this: dance\n\nThen I leave it.\n');
  expect(await err).toMatch(/Answer yes or no\. .*completed\n$/s);
  expect(code).toBe(0);
});

it('examples/client.ts, as a script, prints why a run failed', async () => {
  const script = spawn(process.execPath, ['--import', 'tsx', 'examples/client.ts', 'http://127.0.0.1:1']);
  expect(await textIn(script.stderr)).toMatch(/^No connection: .*\n$/);
});
