import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen, type Served } from '../../support/serve.ts';
import { talker } from './agents.ts';
import { clients } from './clients.ts';
import { cuttingFetch } from './cutting.ts';

let served: Served;
beforeAll(async () => {
  served = await listen([talker], { retry: 1 });
});
afterAll(() => served.app.close());

const answer = () => ({ action: 'accept', content: { answer: 'yes' } }) as const;

describe.each(clients)('%s', (_, open) => {
  it('has each notification once and the whole result, wherever its streams are cut', async () => {
    const talk = async (bytes: readonly number[]) => {
      const { fetch, cuts } = cuttingFetch(bytes);
      const client = await open(served.url, { answer, fetch });
      const seen: number[] = [];
      const onprogress = ({ progress }: { progress: number }) => void seen.push(progress);
      const { content } = await client.call('talker', { input: 'hi' }, { onprogress });
      await client.close();
      return { content, seen, cuts: cuts() };
    };
    const whole = await talk([]);
    expect(JSON.stringify(whole.content)).toContain('You said yes. And so on.');
    let count = 0;
    // Before its first frame, a client has no id to go on with.
    for (let k = 170; k < 2_000; k += 170) {
      const { content, seen, cuts } = await talk([k, k, 170 + (k % 400), 700, 170 + (k % 90), 300]);
      expect(content, `cut after ${k} bytes`).toEqual(whole.content);
      // A client that repeats its call with the reply counts a round of its own.
      const own = seen.filter((n) => n > 1);
      expect([...new Set(own)]).toEqual(own);
      count += cuts;
    }
    expect(count).toBeGreaterThan(15);
  });
});
