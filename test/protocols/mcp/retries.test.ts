import { expect, it } from 'vitest';
import { Hold } from '../../support/hold.ts';
import type { Served } from '../../support/serve.ts';
import { twoNodes } from '../../support/takeovers.ts';
import { forms } from './agents.ts';
import { headersOf, metaOf, request } from './modern.ts';

/** The answer to a call of the modern era. */
async function answerTo({ post }: Served, more: object): Promise<{ result: Record<string, unknown> }> {
  const body = request('tools/call', { name: 'forms', _meta: metaOf(), ...more });
  return (await post('/mcp', body, { accept: 'application/json', ...headersOf('tools/call', 'forms') })).json();
}

it.each(['key', 'run'])(
  'a retry gets the answer of the same retry at another node, which comes while its %s is read',
  async (name) => {
    const { a, b, reads } = await twoNodes(forms, 'a', { protocols: ['mcp'] });
    const { requestState } = (await answerTo(b, { arguments: { input: 'yes' } })).result;
    const retry = { requestState, inputResponses: { 1: { action: 'accept', content: { answer: true } } } };
    const hold = new Hold();
    reads.hold = { name, hold };
    const late = answerTo(a, retry);
    await hold.held();
    const first = await answerTo(b, retry);
    expect(first.result).toMatchObject({ resultType: 'complete', isError: false });
    hold.letGo();
    expect(await late).toEqual(first);
  },
);

it.each(['key', 'run'])(
  'a question that its user leaves cancels nothing where its reply comes by another way while its %s is read',
  async (name) => {
    const { a, b, reads, store } = await twoNodes(forms, 'a', { protocols: ['mcp'] });
    const { requestState } = (await answerTo(b, { arguments: { input: 'yes' } })).result;
    const retry = (response: object) => ({ requestState, inputResponses: { 1: response } });
    const hold = new Hold();
    reads.hold = { name, hold };
    const late = answerTo(a, retry({ action: 'cancel' }));
    await hold.held();
    reads.hold = undefined;
    await answerTo(b, retry({ action: 'accept', content: { answer: true } }));
    hold.letGo();
    expect(await late).toMatchObject(
      name === 'key' ? { error: { data: { reason: 'not_awaiting' } } } : { result: { isError: false } },
    );
    expect((await store.runs({}, undefined, 5)).map(({ status }) => status)).toEqual(['completed']);
  },
);
