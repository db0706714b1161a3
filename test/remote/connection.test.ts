import { getEventListeners } from 'node:events';
import type { RequestListener } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Connection } from '../../src/remote/connection.ts';
import { answering } from '../support/answering.ts';

/** A connection to a server that answers so, and the server's URL. */
async function connectionTo(answer: RequestListener) {
  return { url: await answering(answer), connection: new Connection({ allowNetworks: ['127.0.0.1'] }) };
}

describe('requests to another server', () => {
  it('leave nothing with a signal that outlives them', async () => {
    const { connection, url } = await connectionTo((_, response) => response.end('hi'));
    const { signal } = new AbortController();
    const any = vi.spyOn(AbortSignal, 'any');
    onTestFinished(() => any.mockRestore());
    for (let n = 0; n < 3; n += 1) {
      const response = await connection.fetch(url, { signal });
      expect(await response.text()).toBe('hi');
    }
    await expect(connection.fetch('http://192.0.2.1', { signal })).rejects.toThrow('not allowed');
    await expect.poll(() => getEventListeners(signal, 'abort')).toEqual([]);
    expect(any.mock.calls.flatMap(([signals]) => [...signals])).not.toContain(signal);
  });

  it('end with their signal, before the answer and in the middle of its body', async () => {
    const { connection, url } = await connectionTo((request, response) => {
      if (request.url === '/body') response.write('begun');
    });
    const outer = new AbortController();
    const [silent, begun] = [
      connection.fetch(url, { signal: outer.signal }),
      await connection.fetch(new Request(`${url}/body`, { signal: outer.signal })),
    ];
    const [answer, body] = [expect(silent).rejects.toThrow(), expect(begun.text()).rejects.toThrow()];
    outer.abort();
    await Promise.all([answer, body]);
    await expect.poll(() => getEventListeners(outer.signal, 'abort')).toEqual([]);
  });
});
