import { get as httpGet, type IncomingMessage } from 'node:http';
import { get as httpsGet } from 'node:https';
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent';
import { fail } from '../core/errors.ts';
import type { FetchResource } from '../engine/sessions.ts';

export interface ForeignOptions {
  /** Addresses or CIDR ranges that may be read although they are private. Default none. */
  readonly allowNetworks?: readonly string[];
  /** Characters of a resource. Default 4 Mi. */
  readonly maxSize?: number;
  /** Milliseconds for the whole of it. Default 10,000. */
  readonly timeout?: number;
}

/**
 * Reads resources of other servers, whose URLs come from clients. Private, loopback and link-local
 * addresses are refused where the connection is made, so a name that resolves to one, now or the second
 * time, gets no further. Redirects are not followed.
 */
export function createFetch({
  allowNetworks = [],
  maxSize = 4 * 1024 * 1024,
  timeout = 10_000,
}: ForeignOptions): FetchResource {
  const guard = { allowIPAddressList: [...allowNetworks] };
  const agents = { http: new RequestFilteringHttpAgent(guard), https: new RequestFilteringHttpsAgent(guard) };
  return async (url, signal) => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeout)]);
    try {
      const target = new URL(url);
      if (target.protocol !== 'http:' && target.protocol !== 'https:') throw new Error('only http and https are read');
      return await readText(await request(target, agents, limit), maxSize);
    } catch (error) {
      const why = limit.aborted && !signal.aborted ? `it took longer than ${timeout} ms` : reason(error);
      throw fail('resource_refused', url, why);
    }
  };
}

interface Agents {
  readonly http: RequestFilteringHttpAgent;
  readonly https: RequestFilteringHttpsAgent;
}

function request(target: URL, agents: Agents, signal: AbortSignal): Promise<IncomingMessage> {
  const headers = { accept: 'application/json' };
  return new Promise((resolve, reject) => {
    const sent =
      target.protocol === 'https:'
        ? httpsGet(target, { agent: agents.https, signal, headers }, resolve)
        : httpGet(target, { agent: agents.http, signal, headers }, resolve);
    sent.on('error', reject);
  });
}

async function readText(response: IncomingMessage, maxSize: number): Promise<string> {
  try {
    if (response.statusCode !== 200) throw new Error(`it answered ${response.statusCode}`);
    response.setEncoding('utf8');
    let text = '';
    for await (const chunk of response) {
      text += chunk;
      if (text.length > maxSize) throw new Error(`it is larger than ${maxSize} characters`);
    }
    return text;
  } finally {
    response.destroy();
  }
}

function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return /private IP|meta IP|is not allowed/i.test(message)
    ? 'its address is private; the server’s owner can allow it with --allow-network'
    : message;
}
