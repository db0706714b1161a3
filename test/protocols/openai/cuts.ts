import { setImmediate } from 'node:timers/promises';
import OpenAI from 'openai';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { expect } from 'vitest';
import { agent } from '../../support/agents.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { everything } from './agents.ts';
import { clientOf } from './client.ts';

/** Says everything, a turn of the event loop apart, so that a stream may be cut before the run has ended. */
export const slowly = agent('slowly', async function* (input, context) {
  const said = everything.run(input, context);
  if (!Array.isArray(said)) throw new Error('expected a list');
  for (const one of said) {
    yield one;
    await setImmediate();
  }
});

/**
 * Reads the stream of a new response through cuts, each time from the next server. The client asks for the rest with the
 * last number that it had. Until it has one, it repeats its request, whose key makes no second run.
 */
async function readThroughCuts(clients: readonly OpenAI[], key: string): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = [];
  for (let attempt = 1; ; attempt += 1) {
    const client = clients[attempt % clients.length];
    if (client === undefined || attempt > 1_000) throw new Error('the stream does not end');
    const [first, last] = [events[0], events.at(-1)];
    try {
      const stream =
        first?.type === 'response.created' && last !== undefined
          ? await client.responses.retrieve(first.response.id, { stream: true, starting_after: last.sequence_number })
          : await client.responses.create(
              { model: 'slowly', input: 'go', stream: true },
              { headers: { 'Idempotency-Key': key } },
            );
      for await (const event of stream) events.push(event);
      return events;
    } catch (error) {
      // A connection that was cut has no status.
      if (error instanceof OpenAI.APIError && error.status !== undefined) throw error;
    }
  }
}

/** How a place of cuts is told apart: by its key. */
let keys = 0;

/** Expects that a stream is whole although the connections to each server are cut after so many bytes each. */
async function expectWhole(urls: readonly string[], bytes: readonly number[]): Promise<void> {
  const proxies = await Promise.all(urls.map((url) => CuttingProxy.open(url, bytes)));
  try {
    keys += 1;
    const through = proxies.map(({ url }) => clientOf(url, { maxRetries: 0 }));
    const events = await readThroughCuts(through, `cut ${keys} ${process.pid}`);
    const direct = clientOf(urls.at(-1) ?? '', { maxRetries: 0 });
    const whole = events.reduce<Response | undefined>(
      (response, event) => accumulateResponse(event, response),
      undefined,
    );
    const stored = await direct.responses.retrieve(whole?.id ?? '');
    expect([bytes, whole]).toEqual([bytes, stored]);
    const again: ResponseStreamEvent[] = [];
    for await (const event of await direct.responses.retrieve(stored.id, { stream: true })) again.push(event);
    expect(events).toEqual(again);
  } finally {
    await Promise.all(proxies.map((proxy) => proxy.close()));
  }
}

/**
 * Cuts streams once, after each `step` bytes, and others again and again; each connection after a cut is to the next
 * server. Returns the number of the streams.
 */
export async function expectExactCuts(urls: readonly string[], step: number): Promise<number> {
  const probe = await fetch(`${urls[0]}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'slowly', input: 'go', stream: true }),
  });
  // With the headers, and more.
  const size = (await probe.text()).length + 1_000;
  let streams = 0;
  for (let cut = 1; cut < size; cut += step) {
    await expectWhole(urls, [cut]);
    streams += 1;
  }
  // The largest frame and the headers fit in.
  for (const every of [6_000, 7_001, 9_003]) {
    await expectWhole(
      urls,
      Array.from({ length: 900 }, () => every),
    );
  }
  return streams + 3;
}
