import type { IncomingMessage } from 'node:http';
import { fail, RivuletError } from '../../core/errors.ts';
import { TooLate, withDeadline } from '../../core/timing.ts';
import type { FetchResource } from '../../engine/sessions.ts';
import { addressRule } from './address-guard.ts';
import { guardedRequest, unreachable } from './guarded-request.ts';

export interface ForeignOptions {
  /** Private addresses or CIDR ranges that may be read. Default none. */
  readonly allowNetworks?: readonly string[];
  /** Characters of a resource. Default 4 Mi. */
  readonly maxSize?: number;
  /** Milliseconds for a whole request. Default 10,000. */
  readonly timeout?: number;
}

/**
 * Reads resources of other servers, whose URLs come from clients. Private, loopback and link-local addresses are
 * refused when the connection is made, so a name that resolves to one, also on a second look-up, is refused. Redirects
 * are not followed.
 * @throws Error that names a text of `allowNetworks` which is no network
 */
export function createFetch({
  allowNetworks = [],
  maxSize = 4 * 1024 * 1024,
  timeout = 10_000,
}: ForeignOptions): FetchResource {
  const isAllowed = addressRule(allowNetworks);
  return (url, stopped) => {
    const refuse = (why: string): RivuletError => fail('resource_refused', url, why);
    const read = async (signal: AbortSignal): Promise<string> => {
      try {
        if (!/^https?:/i.test(url) || !URL.canParse(url)) throw refuse('only http and https URLs are read');
        const headers = { accept: 'application/json' };
        const response = await guardedRequest(new URL(url), isAllowed, { method: 'GET', headers, signal });
        if (response.statusCode !== 200) {
          // The body of an error is not read.
          response.destroy();
          throw refuse(`it answered ${response.statusCode}`);
        }
        const text = await readText(response, maxSize);
        if (text === undefined) throw refuse(`it is larger than ${maxSize} characters`);
        return text;
      } catch (error) {
        if (error instanceof RivuletError) throw error;
        throw refuse(signal.reason instanceof TooLate ? `it took longer than ${timeout} ms` : unreachable);
      }
    };
    return withDeadline(timeout, read, stopped);
  };
}

/** The body; undefined where it is too large. */
async function readText(response: IncomingMessage, maxSize: number): Promise<string | undefined> {
  try {
    response.setEncoding('utf8');
    let text = '';
    for await (const chunk of response) {
      text += chunk;
      if (text.length > maxSize) return undefined;
    }
    return text;
  } finally {
    response.destroy();
  }
}
