import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text as textIn } from 'node:stream/consumers';
import { createClient } from 'rivulet/client';
import { lastValueFrom, toArray } from 'rxjs';
import { expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { live, talk } from '../../examples/client.ts';
import { echo, tokens } from '../support/agents.ts';
import { serve } from '../support/serve.ts';

it('live() emits the output as it grows', async () => {
  const { url } = await serve([tokens]);
  const answer = live(createClient({ url }), 'tokens', '3');
  expect(await lastValueFrom(answer.pipe(toArray()))).toEqual(['t0 ', 't0 t1 ', 't0 t1 t2 ']);
});

it('talk() prints the output piece by piece, and replies to questions', async () => {
  const { url } = await serve([approve]);
  const pieces: string[] = [];
  const questions: string[] = [];
  const run = await talk(
    createClient({ url }),
    'approve',
    'dance',
    (piece) => pieces.push(piece),
    async (question) => {
      questions.push(question);
      return 'yes';
    },
  );
  expect(questions).toEqual(['Shall I? Answer yes or no.']);
  expect(pieces.join('')).toBe('I am about to do this: dance\n\nDone: dance\n');
  expect(run?.status).toBe('completed');
});

// client.servers.ts closes its input.
it('as a script, prompts on the terminal and exits with the status of the run', async () => {
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

it('as a script, prints why a run failed', async () => {
  const script = spawn(process.execPath, ['--import', 'tsx', 'examples/client.ts', 'http://127.0.0.1:1']);
  expect(await textIn(script.stderr)).toMatch(/^No connection: .*\n$/);
});
