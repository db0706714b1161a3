import { TaskState } from '@a2a-js/sdk';
import { type Agent, defineAgent, file, textOf } from 'rivulet';
import { type RemoteAgentOptions, remoteAgent } from 'rivulet/remote';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { serve } from '../support/serve.ts';
import { turn } from '../support/turn.ts';
import { type A2aServer, type A2aTask, startA2a, textPart } from './a2a-server.ts';

const local = { allowNetworks: ['127.0.0.1'], delay: 5 } as const;

async function start(script: (task: A2aTask) => Promise<void> | void, options = {}): Promise<A2aServer> {
  const server = await startA2a(script, options);
  onTestFinished(() => server.close());
  return server;
}

const remote = ({ url }: { url: string }, options: RemoteAgentOptions = {}): Promise<Agent> =>
  remoteAgent(url, { ...local, ...options });

/** Counts in one artifact, then adds data and a file in others. */
async function counts({ text, add, work, end }: A2aTask): Promise<void> {
  work('Counting.');
  for (let n = 1; n <= Number(text); n += 1) {
    add('count', textPart(`${n} `), n === Number(text));
    await turn();
  }
  add('data', { content: { $case: 'data', value: { rows: [1, 2] } } }, true);
  add('file', {
    content: { $case: 'raw', value: Buffer.from([137, 80, 0]) },
    filename: 'dot.png',
    mediaType: 'image/png',
  });
  add('link', { content: { $case: 'url', value: 'https://example.com/a.pdf' }, mediaType: 'application/pdf' });
  end(TaskState.TASK_STATE_COMPLETED);
}

/** What `counts` says, as the parts of a run. */
const counted = (to: number): unknown[] => [
  { content_type: 'text/plain', metadata: { kind: 'trajectory', message: 'Counting.' } },
  { content_type: 'text/plain', content: Array.from({ length: to }, (_, n) => `${n + 1} `).join('') },
  { content_type: 'application/json', content: '{"rows":[1,2]}' },
  { content_type: 'image/png', content: 'iVAA', content_encoding: 'base64', name: 'dot.png' },
  { content_type: 'application/pdf', content_url: 'https://example.com/a.pdf' },
];

const asks = ({ text, isReply, add, end }: A2aTask): void => {
  if (isReply) {
    add('answer', textPart(`You said ${text}.`), true);
    end(TaskState.TASK_STATE_COMPLETED);
  } else {
    add('question', textPart('Let me see. '), true);
    end(TaskState.TASK_STATE_INPUT_REQUIRED, 'How many cups?');
  }
};

describe('an A2A agent', () => {
  it('has a manifest from its card, found under the URL or at it', async () => {
    const server = await start(() => {});
    for (const url of [server.url, `${server.url}.well-known/agent-card.json`]) {
      const { manifest } = await remote({ url });
      expect(manifest).toMatchObject({
        name: 'tea-expert',
        description: 'Knows tea.',
        input_content_types: ['text/plain'],
        output_content_types: ['*/*'],
        metadata: { tags: ['tea'], examples: ['Which tea?'] },
      });
    }
  });

  it('emits text, data, files, links and what it says while it works', async () => {
    const { run, parts } = await runAgent(await remote(await start(counts)), '3');
    expect(run.status).toBe('completed');
    expect(parts).toEqual(counted(3));
    expect(run.output).toHaveLength(4);
  });

  it('works on a server that cannot stream', async () => {
    const { run, parts } = await runAgent(await remote(await start(counts, { streaming: false })), '3');
    expect(run.error).toBeUndefined();
    expect(parts.slice(-4)).toEqual(counted(3).slice(1));
  });

  it('gets the parts of the input', async () => {
    let said = '';
    const server = await start(({ text, end }) => {
      said = text;
      end(TaskState.TASK_STATE_COMPLETED, 'Fine.');
    });
    const { text } = await runAgent(await remote(server, { manifest: { input_content_types: ['*/*'] } }), [
      'Look: ',
      file('dot.png', new Uint8Array([137, 0]), 'image/png'),
    ]);
    expect([said, text]).toEqual(['Look: ', 'Fine.']);
  });

  it('asks when input is required, and gets the reply in the same task', async () => {
    const server = await start(asks);
    const { run, questions, parts } = await runAgent(await remote(server), 'Tea', { answers: ['Two'] });
    expect(run.error).toBeUndefined();
    expect(textOf(questions[0]?.message ?? '')).toBe('How many cups?');
    expect(textOf(parts)).toBe('Let me see. You said Two.');
    expect(server.messages).toHaveLength(2);
  });

  it.each([
    [TaskState.TASK_STATE_FAILED, 'No tea.', 'remote_failed'],
    [TaskState.TASK_STATE_REJECTED, 'Not now.', 'remote_rejected'],
    [TaskState.TASK_STATE_CANCELED, undefined, 'remote_cancelled'],
    [TaskState.TASK_STATE_AUTH_REQUIRED, undefined, 'remote_auth_required'],
  ])('fails the run in the state %i', async (state, message, code) => {
    const { run } = await runAgent(await remote(await start(({ end }) => end(state, message))), 'Tea');
    expect(run.error?.data?.code).toBe(code);
    if (message !== undefined) expect(run.error?.message).toBe(message);
  });

  it('is cancelled on its server when the caller is cancelled', async () => {
    const begun: string[] = [];
    const server = await start(async ({ add }) => {
      add('a', textPart('One. '));
      begun.push('one');
      await expect.poll(() => server.cancelled.length).toBe(1);
    });
    const abort = new AbortController();
    const run = runAgent(await remote(server), 'Tea', { signal: abort.signal });
    await expect.poll(() => begun.length).toBe(1);
    abort.abort();
    expect((await run).run.status).toBe('cancelled');
    await expect.poll(() => server.cancelled.length).toBe(1);
  });

  it('gets the token of the run on every request, and the same context for a session', async () => {
    const server = await start(({ end }) => end(TaskState.TASK_STATE_COMPLETED, 'Fine.'));
    await runAgent(await remote(server, { token: (context) => context?.run_id ?? 'none' }), 'Tea');
    const [first, ...others] = server.headers.map(({ authorization }) => authorization);
    expect(first).toBe('Bearer none');
    expect(new Set(others).size).toBe(1);
    expect(others[0]).not.toBe(first);
  });

  it('fails with a clear error where its server refuses or is gone', async () => {
    const server = await startA2a(() => {});
    const far = await remote(server, { retries: 2 });
    await server.close();
    const { run } = await runAgent(far, 'Tea');
    expect(run.error).toMatchObject({
      message: 'The remote agent does not answer.',
      data: { code: 'remote_unreachable' },
    });
  });

  it.each([700, 1_200, 2_500])('continues after cuts, the first after %i bytes of the stream', async (bytes) => {
    const server = await start(counts);
    const proxy = await CuttingProxy.open(server.url, [bytes, 900, 1_500]);
    onTestFinished(() => proxy.close());
    server.advertise(`${proxy.url}/`);
    const { parts } = await runAgent(await remote(server), '30');
    // What it says while it works is not in the task afterwards.
    expect(parts.filter(({ metadata }) => metadata === undefined)).toEqual(counted(30).slice(1));
    expect(proxy.cuts).toBeGreaterThan(0);
  });
});

it('a file of text/plain keeps its media type and its bytes, to a remote agent and back', async () => {
  const returns = defineAgent({ name: 'returns', description: 'Returns its input.' }, (input) => input);
  const { url } = await serve([returns]);
  const parts = [
    { ...file('a.txt', 'text'), content_type: 'text/plain' },
    { ...file('latin.txt', Buffer.from('ü', 'latin1')), content_type: 'text/plain' },
    { content_type: 'text/plain', content_url: 'https://example.com/a' },
  ];
  const agent = await remote({ url: `${url}/a2a/returns` });
  const { run } = await runAgent(agent, { role: 'user', parts });
  expect(run.output.flatMap((message) => message.parts)).toEqual(parts);
});

describe('a durable caller of an A2A agent', () => {
  it('makes one task and gets each part once, wherever it is cut off', async () => {
    const server = await start(counts);
    const texts = (run: { output: readonly { parts: readonly object[] }[] }): unknown =>
      run.output.flatMap(({ parts }) => parts).filter((part) => !('metadata' in part));
    const { cuts } = await cutEverywhere(await remote(server, { durable: true }), '12', { endOf: texts });
    expect(cuts).toBeGreaterThan(3);
  });

  it('replies once', async () => {
    const server = await start(asks);
    await cutEverywhere(await remote(server, { durable: true }), 'Tea', { answers: ['Two'] });
    // The SDK's server makes a task of each message without one, also of one that is repeated.
    const tasks = [...new Set(server.messages.map(({ taskId }) => taskId))];
    const sent = tasks.map((id) => server.messages.filter(({ taskId }) => taskId === id));
    expect(sent.filter((messages) => messages.length > 2)).toEqual([]);
    const begun = sent.map(([first]) => first?.messageId);
    expect(new Set(begun).size).toBe(1);
  });
});
