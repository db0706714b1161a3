import { textOf } from 'rivulet';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { describe, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';

const answered = (...answers: string[]) => runAgent(approve, 'sell the boat', { answers });

describe('approve', () => {
  it('says what it is about to do, and waits', async () => {
    const { run, text, questions } = await answered();
    expect(run.status).toBe('awaiting');
    expect(text).toBe('I am about to do this: sell the boat\n');
    expect(questions.map(({ message }) => textOf(message))).toEqual(['Shall I? Answer yes or no.']);
  });

  it.each(['yes', 'Yes, please', ' ok', 'y'])('acts when the answer is "%s"', async (reply) => {
    const { run, text } = await answered(reply);
    expect(run.status).toBe('completed');
    expect(text).toMatch(/Done: sell the boat$/);
  });

  it.each(['no', 'Not yet', 'yesterday', ''])('leaves it when the answer is "%s"', async (reply) => {
    const { run, text } = await answered(reply);
    expect(run.status).toBe('completed');
    expect(text).toMatch(/Then I leave it\.$/);
  });

  it('ends the same wherever its process dies', async () => {
    const { cuts } = await cutEverywhere(approve, 'sell the boat', { answers: ['yes'] });
    expect(cuts).toBeGreaterThan(1);
  });
});
