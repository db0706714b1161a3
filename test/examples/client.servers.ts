import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text as textIn } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
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
