import { get } from 'node:http';
import { expect, it } from 'vitest';
import { agent } from '../support/agents.ts';
import { ask, serve } from '../support/serve.ts';

it('a large answer arrives whole, also where a piece would end between the halves of a character', async () => {
  const text = '😀'.repeat(300_000);
  for (const before of ['', 'a']) {
    const served = await serve([agent('large', () => before + text)]);
    const answer = await served.post('/runs', ask('large'));
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect((await answer.json()).output[0].parts[0].content).toBe(before + text);
    const run = await served.get(`/runs/${answer.headers.get('run-id')}`);
    expect((await run.json()).output[0].parts[0].content).toBe(before + text);
  }
});

it('a large answer that its client does not read is not encoded beyond what its connection takes', async () => {
  const served = await serve([agent('large', () => 'a'.repeat(20_000_000))]);
  const made = await served.post('/runs', ask('large'));
  await made.arrayBuffer();
  const before = process.memoryUsage().arrayBuffers;
  const requests = Array.from({ length: 5 }, () => get(`${served.url}/runs/${made.headers.get('run-id')}`));
  await Promise.all(requests.map((request) => new Promise((resolve) => request.once('response', resolve))));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000);
  for (const request of requests) request.on('error', () => {}).destroy();
});
