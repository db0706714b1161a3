import { describe, expect, it } from 'vitest';
import type { Run } from '../../../src/index.ts';
import { askOnce } from '../../support/agents.ts';
import { nodes } from '../../support/nodes.ts';
import { ask, finished, textOf } from '../../support/serve.ts';

const reply = { mode: 'async', await_resume: { message: { parts: [{ content: 'yes' }] } } };

describe('an asynchronous resume', () => {
  it.each([
    ['a durable run', true],
    ['a run that is not durable', false],
  ])('of %s at another node answers the run in progress, however soon it ends', async (_, durable) => {
    const { node, queue } = nodes([{ ...askOnce, options: { durable } }]);
    queue.next = 'a';
    const [a, b] = [await node('a'), await node('b')];
    for (let n = 0; n < 10; n += 1) {
      const asked: Run = await (await a.post('/runs', ask('ask'))).json();
      expect(asked.status).toBe('awaiting');
      const response = await b.post(`/runs/${asked.run_id}`, reply);
      const { await_request, ...rest } = asked;
      const questions = [{ ...asked.questions?.[0], reply: expect.objectContaining({ type: 'message', id: '1' }) }];
      expect([response.status, await response.json()]).toEqual([202, { ...rest, questions, status: 'in-progress' }]);
      expect(textOf(await finished(b, asked.run_id))).toBe('before. You said yes.');
    }
  });
});
