import { Client } from 'acp-sdk';
import { of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AgentError, type AgentFunction, type AgentOutput } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';
import { serveApi } from '../../support/serve.ts';

const emits =
  (output: unknown): AgentFunction =>
  () =>
    of(output as AgentOutput);
const throws =
  (thrown: unknown): AgentFunction =>
  () =>
    throwError(() => thrown);
const ring: { self?: unknown } = Object.create(null);
ring.self = ring;
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();

describe('a run that fails', () => {
  // Made when it is needed, since the runner would write the values into titles.
  it.each<[string, () => AgentFunction, object]>([
    ['emits a Date', () => emits(new Date()), { reason: 'output_invalid' }],
    ['emits a BigInt', () => emits({ content: 5n }), { reason: 'output_invalid' }],
    ['emits a ring', () => emits({ content: 'a', ring }), { reason: 'output_invalid' }],
    ['emits a relative URL', () => emits({ content_url: 'a.png' }), { reason: 'output_invalid' }],
    [
      'emits a leap second',
      () => emits({ parts: [], created_at: '2016-12-31T23:59:60Z' }),
      { reason: 'output_invalid' },
    ],
    [
      'awaits a number',
      () => (_, context) => context.await({ parts: [{ content: 5 }] } as never) as never,
      { reason: 'await_invalid' },
    ],
    [
      'awaits without an end',
      () => (_, context) => context.await('?', { expiresIn: Number.NaN }) as never,
      { reason: 'await_invalid' },
    ],
    ['throws a list as data', () => throws(new AgentError('quota', 'm', [1])), { value: [1], code: 'quota' }],
    ['throws a text as data', () => throws(new AgentError('not_found', 'm', 'five')), { value: 'five' }],
    [
      'throws circular data',
      () => throws(new AgentError('quota', 'm', ring)),
      { invalid: expect.any(String), code: 'quota' },
    ],
  ])('can be read by ACP’s client where its agent %s', async (_, run, data) => {
    const { url } = await serveApi([agent('odd', run())]);
    const client = new Client({ baseUrl: url });
    const failed = await client.runSync('odd', 'go');
    expect([failed.status, failed.error?.data]).toEqual(['failed', data]);
    expect((await client.runEvents(failed.run_id)).at(-1)).toMatchObject({
      type: 'run.failed',
      run: { error: { data } },
    });
  });

  it.each<[string, () => unknown]>([
    ['a revoked Proxy', () => proxy],
    ['an object without a prototype', () => ring],
    ['a symbol', () => Symbol('s')],
    [
      'an error whose message throws',
      () =>
        Object.defineProperty(new Error('m'), 'message', {
          get() {
            throw new Error('no look');
          },
        }),
    ],
  ])('is one where its agent throws %s', async (_, thrown) => {
    const { url } = await serveApi([agent('odd', throws(thrown()))]);
    const failed = await new Client({ baseUrl: url }).runSync('odd', 'go');
    expect([failed.status, failed.error?.code]).toEqual(['failed', 'server_error']);
    await new Client({ baseUrl: url }).ping();
  });
});
