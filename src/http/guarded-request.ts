import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { type AddressRule, guardedLookup } from './address-guard.ts';

export interface GuardedRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/**
 * Makes a request to an address that a client has chosen. The rule is asked when the connection is made, for the very
 * address that is connected to; redirects are not followed. The caller destroys the response.
 */
export function guardedRequest(
  target: URL,
  isAllowed: AddressRule,
  { method, headers, body, signal }: GuardedRequest,
): Promise<IncomingMessage> {
  const host = target.hostname.replace(/^\[|\]$/g, '');
  // For an address there is no look-up.
  if (isIP(host) !== 0 && !isAllowed(host)) return Promise.reject(new Error('this address is not allowed'));
  const request = target.protocol === 'https:' ? httpsRequest : httpRequest;
  const options = {
    method,
    // A new connection: a kept one may be to an address that was checked for another request.
    agent: false,
    lookup: guardedLookup(isAllowed, signal),
    headers,
    signal,
  };
  return new Promise((resolve, reject) => {
    const sent = request(target, options, resolve);
    sent.on('error', reject);
    // After a status of 101, the caller owns the connection.
    sent.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve(response);
    });
    sent.end(body);
  });
}
