import { TooLate, withDeadline } from '../../core/timing.ts';
import { type Attempt, attemptTimeout, type SendWebhook } from '../../engine/webhooks/deliverer.ts';
import { addressRule } from './address-guard.ts';
import { guardedRequest, unreachable } from './guarded-request.ts';
import type { WebhookSecrets } from './webhook-secrets.ts';

/**
 * POSTs webhooks, signed after Standard Webhooks. Private addresses are refused when the connection is made, redirects
 * are failures, and answers are not read. `time`: milliseconds of one attempt.
 * @throws Error that names a text of `allowNetworks` which is no network
 */
export function createSend(
  secrets: WebhookSecrets,
  allowNetworks: readonly string[] = [],
  time = attemptTimeout,
): SendWebhook {
  const isAllowed = addressRule(allowNetworks);
  return ({ delivery_id, owner, url, body }, stopped, more = {}) => {
    const timestamp = Math.floor(Date.now() / 1_000);
    const attempt = async (signal: AbortSignal): Promise<Attempt> => {
      try {
        const headers = {
          ...more,
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(body)),
          'user-agent': 'rivulet',
          'webhook-id': delivery_id,
          'webhook-timestamp': String(timestamp),
          'webhook-signature': secrets.sign(owner, url, { id: delivery_id, timestamp, body }),
        };
        const options = { method: 'POST', headers, body, signal, share: owner ?? '' };
        const response = await guardedRequest(new URL(url), isAllowed, options);
        const { statusCode: status = 0 } = response;
        // It may be endless.
        response.destroy();
        if (status >= 200 && status < 300) return { status, error: null };
        const after = secondsOf(response.headers['retry-after']);
        return { status, error: `it answered ${status}`, ...(after > 0 && { retryAfter: after }) };
      } catch {
        if (stopped.aborted) return { status: null, error: 'the server stopped during the attempt' };
        const isLate = signal.reason instanceof TooLate;
        return { status: null, error: isLate ? `it took longer than ${time} ms` : unreachable };
      }
    };
    return withDeadline(time, attempt, stopped);
  };
}

/** The seconds that `Retry-After` asks for: it has a number or a date. */
const secondsOf = (text = ''): number =>
  /^\s*[A-Z]/i.test(text) ? (Date.parse(text) - Date.now()) / 1_000 : Number(text);

/** What is wrong with the URL of a webhook, before any connection; undefined if nothing is. */
export function webhookProblem(text: string, allowNetworks: readonly string[] = []): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return 'expected an absolute https URL';
  // Its networks are trusted: that is how it is tried on one's own machine.
  if (url.protocol === 'http:' && allowNetworks.length === 0) return 'expected https; http needs --allow-network';
  if (url.username !== '' || url.password !== '') return 'expected a URL without a user and a password';
  return undefined;
}
