import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { type AddressRule, guardedLookup, type LookupOptions } from './address-guard.ts';

export interface GuardedRequest extends LookupOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/**
 * The same text for an unknown name, a private address and a closed port: a client must not learn which names and ports
 * exist in the network of this server.
 */
export const unreachable = 'it cannot be reached, or its address is private and not one of --allow-network';

/** Answers such as 100 and 103 before the answer. Real servers send one or two. */
const maxInterim = 10;

/**
 * Makes a request to an address that a client has chosen. The rule is asked when the connection is made, for the very
 * address that is connected to; redirects are not followed. The caller destroys the response.
 */
export function guardedRequest(
  target: URL,
  isAllowed: AddressRule,
  { method, headers, body, signal, ...names }: GuardedRequest,
): Promise<IncomingMessage> {
  const host = target.hostname.replace(/^\[|\]$/g, '');
  // For an address there is no look-up.
  if (isIP(host) !== 0 && !isAllowed(host)) return Promise.reject(new Error('this address is not allowed'));
  const request = target.protocol === 'https:' ? httpsRequest : httpRequest;
  const options = {
    method,
    // A new connection: a kept one may be to an address that was checked for another request.
    agent: false,
    lookup: guardedLookup(isAllowed, signal, names),
    headers,
    signal,
  };
  return new Promise((resolve, reject) => {
    const sent = request(target, options, resolve);
    sent.on('error', reject);
    // Of an endless row of them, each costs as much as a request, for as long as the caller waits.
    let interim = 0;
    sent.on('information', () => {
      interim += 1;
      if (interim > maxInterim) sent.destroy(new Error(`more than ${maxInterim} interim answers`));
    });
    // After a status of 101, the caller owns the connection.
    sent.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve(response);
    });
    sent.end(body);
  });
}
