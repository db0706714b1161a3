import { createClient } from 'rivulet/client';
import { lastValueFrom, toArray } from 'rxjs';
import { expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { live, talk } from '../../examples/client.ts';
import { tokens } from '../support/agents.ts';
import { serveApi } from '../support/serve.ts';

it('live() emits the output as it grows', async () => {
  const { url } = await serveApi([tokens]);
  const answer = live(createClient({ url }), 'tokens', '3');
  expect(await lastValueFrom(answer.pipe(toArray()))).toEqual(['t0 ', 't0 t1 ', 't0 t1 t2 ']);
});

it('talk() prints the output piece by piece, and replies to questions', async () => {
  const { url } = await serveApi([approve]);
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
