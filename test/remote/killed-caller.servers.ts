import { defineAgent, type Run, textOf as textIn } from 'rivulet';
import { createClient } from 'rivulet/client';
import { expect, it } from 'vitest';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { listen, textOf } from '../support/serve.ts';

/** Counts, and waits in between until the test lets it go on. */
const gates: (() => void)[] = [];
const counting = defineAgent({ name: 'counting', description: 'Counts.' }, async function* (input) {
  for (let n = 1; n <= Number(textIn(input)); n += 1) {
    yield `${n} `;
    if (n % 5 === 0) await new Promise<void>((resolve) => gates.push(resolve));
  }
});

it('a caller that is killed again and again goes on with the one remote run', async (t) => {
  const there = await listen([counting], { retry: 20 });
  const options = "{ allowNetworks: ['127.0.0.1'], durable: true, delay: 20 }";
  const { folder, remove } = makeProject({
    'agents/counting.js': `import { remoteAgent } from 'rivulet/remote';
export default await remoteAgent('${there.url}/agents/counting', ${options});
`,
  });
  let caller: RivuletProcess | undefined;
  t.onTestFinished(async () => {
    await caller?.stop('SIGKILL');
    remove();
    await there.app.close();
  });
  const start = async (): Promise<ReturnType<typeof createClient>> => {
    caller = new RivuletProcess(['serve', '--port', '0', '--limit', 'attempts=100'], {}, folder);
    return createClient({ url: await caller.url() });
  };
  let client = await start();
  const { run_id } = await client.start('counting', '20');
  for (const last of [5, 10, 15]) {
    for await (const event of client.watch(run_id)) {
      if (event.type === 'message.part' && event.part.content === `${last} `) break;
    }
    await caller?.stop(last === 10 ? 'SIGTERM' : 'SIGKILL');
    await expect.poll(() => gates.length).toBe(1);
    gates.pop()?.();
    client = await start();
  }
  await expect.poll(() => gates.length).toBe(1);
  gates.pop()?.();
  let run: Run | undefined;
  for await (const event of client.watch(run_id)) if ('run' in event) run = event.run;
  expect(run?.status).toBe('completed');
  expect(run && textOf(run)).toBe(Array.from({ length: 20 }, (_, n) => `${n + 1} `).join(''));
  const { runs } = await createClient({ url: there.url }).runs();
  expect(runs.map(({ status }) => status)).toEqual(['completed']);
});
