import { once } from 'node:events';
import type { Agent } from 'rivulet';
import { createClient } from 'rivulet/client';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { expertServer } from '../../examples/remote/expert-server.ts';
import weather from '../../examples/remote/there/weather.ts';
import { listen, textOf } from '../support/serve.ts';

const there = await listen([weather], { retry: 20 });
const expert = expertServer(there.url).listen(0, '127.0.0.1');
await once(expert, 'listening');
const address = expert.address();
process.env.WEATHER_URL = `${there.url}/agents/weather`;
process.env.EXPERT_URL = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
const load = async (name: string): Promise<Agent> => (await import(`../../examples/remote/here/${name}.ts`)).default;
const here = await listen([await load('weather'), await load('expert'), await load('planner')]);
const client = createClient({ url: here.url });
const far = createClient({ url: there.url });

afterAll(async () => {
  await here.app.close();
  expert.close();
  expert.closeAllConnections();
  await there.app.close();
  delete process.env.WEATHER_URL;
  delete process.env.EXPERT_URL;
});

it('the planner calls the agents of two other servers', async () => {
  const run = await client.sync('planner', 'Oslo');
  expect(run.error).toBeUndefined();
  const text = textOf(run);
  expect(text).toMatch(/^The weather: (\d+:00 \d+ °C\. ){4}/);
  expect(text).toMatch(/To pack: (a coat, |a hat, ){4}and a book\.$/);
  expect(run.output.flatMap(({ parts }) => parts).map(({ name }) => name)).toContain('forecast.json');
});

it('cancels them with it', async () => {
  process.env.WEATHER_PACE = '600000';
  onTestFinished(() => void delete process.env.WEATHER_PACE);
  for await (const event of client.run('planner', 'Bergen', { onFailed: 'end' })) {
    if (event.type === 'message.part' && event.part.content?.includes('°C')) break;
  }
  const [newest] = (await client.runs({ agent_name: 'planner' })).runs;
  await client.cancel(newest?.run_id ?? '');
  await expect.poll(async () => (await client.get(newest?.run_id ?? '')).status).toBe('cancelled');
  await expect.poll(async () => (await far.runs({ agent_name: 'weather' })).runs[0]?.status).toBe('cancelled');
});
