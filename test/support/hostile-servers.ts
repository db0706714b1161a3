import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { vi } from 'vitest';
import { answering } from './answering.ts';

type Handler = (request: IncomingMessage, response: ServerResponse, body: { id?: unknown; method?: string }) => void;

/** A server that answers as a test says. Returns its URL. */
export const listenAs = (handler: Handler): Promise<string> =>
  answering(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    handler(request, response, text === '' ? {} : JSON.parse(text));
  });

export const json = (response: ServerResponse, value: unknown): void =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

/** An MCP server of an older version, whose calls are answered as a test says. */
export const mcpServer = (onCall: Handler): Promise<string> =>
  listenAs((request, response, body) => {
    const { id, method = '' } = body;
    if (request.method !== 'POST') response.writeHead(405).end();
    else if (method.startsWith('notifications/')) response.writeHead(202).end();
    else if (method === 'tools/call') onCall(request, response, body);
    else if (method === 'initialize') {
      const serverInfo = { name: 'hostile', version: '1' };
      const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
      json(response, { jsonrpc: '2.0', id, result });
    } else json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });
  });

/** More than what is kept of an endless answer: 64 MiB, and what the sockets have. */
export const endlessLimit = 200_000_000;

/** Sends a text without an end. Resolves to its bytes when the other side has closed the connection. */
export function endless(response: ServerResponse, contentType: string, head: string, filler = 'x'): Promise<number> {
  if (!response.headersSent) response.writeHead(200, { 'content-type': contentType });
  response.write(head);
  const piece = Buffer.alloc(1_000_000, filler);
  let bytes = 0;
  const push = (): void => {
    for (let more = true; more && !response.destroyed; bytes += piece.length) more = response.write(piece);
  };
  response.on('drain', push);
  push();
  return once(response, 'close').then(() => bytes);
}

/**
 * Sends a text again and again, a moment apart, until the other side has closed the connection. The moment passes on the
 * clock of the test, where it has one.
 */
export function trickle(response: ServerResponse, contentType: string, text: string): Promise<unknown> {
  response.writeHead(200, { 'content-type': contentType });
  const timer = setInterval(() => {
    response.write(text);
    if (vi.isFakeTimers()) vi.advanceTimersByTime(20);
  }, 2);
  return once(response, 'close').finally(() => clearInterval(timer));
}
