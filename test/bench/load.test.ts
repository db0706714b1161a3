import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { token } from '../../bench/contestants/tokens.ts';
import { requests } from '../../bench/load/requests.ts';
import { stream } from '../../bench/load/stream.ts';
import { plain } from '../../bench/wires.ts';

const event = (content: string): string => `data: ${JSON.stringify({ type: 'message.part', part: { content } })}\n\n`;
const tokens = (numbers: number[]): string[] => numbers.map((n) => event(token(n)));

let server: Server;
afterEach(() => {
  server.close();
});

/** A server that answers with these pieces, each in one write. */
async function answering(pieces: string[]): Promise<number> {
  server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of pieces) response.write(piece);
    response.end();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return (server.address() as AddressInfo).port;
}

async function reading(pieces: string[], expected = 4, from = 0): Promise<unknown> {
  const port = await answering(pieces);
  return stream({ port, request: plain.request(expected, 0), wire: plain, tokens: expected, from });
}

describe("the bench's load generator", () => {
  it('accepts tokens in order', async () => {
    await expect(reading(tokens([0, 1, 2, 3]))).resolves.toMatchObject({ first: expect.any(Number) });
  });

  it('accepts tokens from the middle of a log', async () => {
    await expect(reading(tokens([7, 8]), 2, 7)).resolves.toBeDefined();
  });

  it('ignores other events', async () => {
    const other = 'data: {"type":"run.completed"}\n\n';
    await expect(reading([other, ...tokens([0, 1, 2, 3]), other])).resolves.toBeDefined();
  });

  it.each([
    ['a missing one', tokens([0, 2, 3]), 'token 1 did not come'],
    ['a missing last one', tokens([0, 1, 2]), '3 of 4 tokens came'],
    ['a duplicate', tokens([0, 1, 1, 2, 3]), 'token 2 did not come'],
    ['an additional one', tokens([0, 1, 2, 3, 4]), '5 of 4 tokens came'],
    ['two in the wrong order', tokens([0, 2, 1, 3]), 'token 1 did not come'],
    ['a wrong one', [...tokens([0, 1]), event('tokem 2 '), ...tokens([3])], 'token 2 did not come'],
    ['one that begins like the right one', [...tokens([0]), event('token 1  ')], 'token 1 did not come'],
    ['no stream at all', ['{"code":"not_found"}'], '0 of 4 tokens came'],
  ])('refuses %s', async (_what, pieces, message) => {
    await expect(reading(pieces)).rejects.toThrow(message);
  });

  it('refuses an incorrect answer', async () => {
    server = createServer((_request, response) => response.end('{"status":"failed"}')).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
    const load = { port, connections: 2, count: 10, request };
    await expect(requests({ ...load, right: (answer) => answer.includes('"failed"') })).resolves.toHaveLength(2);
    await expect(requests({ ...load, right: (answer) => answer.includes('"completed"') })).rejects.toThrow(
      'a wrong answer',
    );
  });
});
