import { createServer } from 'rivulet';
import { createClient } from 'rivulet/client';
import { replayLog, runAgent, toMatchLog } from 'rivulet/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { askOnce, echo } from '../support/agents.ts';
import { rivuletHere } from '../support/command.ts';

describe('rivulet record', () => {
  it('prints a log that matches another run of the agent, one event a line', async ({ onTestFinished }) => {
    const app = await createServer({ agents: [echo, askOnce], limits: { shutdownGrace: 0 } });
    onTestFinished(() => app.close());
    const env = { RIVULET_URL: await app.listen({ port: 0, host: '127.0.0.1' }) };
    const client = createClient({ url: env.RIVULET_URL });

    const asked = await client.sync('ask', 'go');
    const waiting = await rivuletHere(['record', asked.run_id], { env });
    expect(waiting.code).toBe(0);
    expect(toMatchLog(JSON.parse(waiting.out), (await runAgent(askOnce, 'go')).events).message()).toMatch(
      /^expected a log/,
    );
    await client.resume(asked.run_id, 'yes');

    const done = await rivuletHere(['record', asked.run_id], { env });
    const log = JSON.parse(done.out);
    expect(done.out.trim().split('\n')).toHaveLength(log.length + 2);
    expect(toMatchLog(log, (await runAgent(askOnce, 'go', { answers: ['yes'] })).events).pass).toBe(true);
    expect(await lastValueFrom(replayLog(log).pipe(toArray()))).toEqual(log);
  });

  it('says that there is no such run', async ({ onTestFinished }) => {
    const app = await createServer({ agents: [echo] });
    onTestFinished(() => app.close());
    const env = { RIVULET_URL: await app.listen({ port: 0, host: '127.0.0.1' }) };
    const { code, err } = await rivuletHere(['record', '11111111-2222-4333-8444-555555555555'], { env });
    expect([code, err]).toEqual([2, expect.stringContaining('There is no run 11111111')]);
  });
});
