import { createHmac } from 'node:crypto';
import { minSecretLength } from '../limits/limits.ts';

/**
 * The secrets of webhooks, derived from master secrets: one for each owner and origin. So the store has no secrets, and
 * every node has the same ones. The first master is the current one; webhooks are signed with all of them, so that
 * receivers can change over.
 */
export class WebhookSecrets {
  readonly #masters: readonly string[];

  /** @throws Error for a secret that is too short */
  constructor(masters: readonly string[]) {
    if (masters.some((master) => master.length < minSecretLength)) {
      throw new Error(
        `webhooks.secrets: expected at least ${minSecretLength} characters each, such as of "openssl rand -hex 32"`,
      );
    }
    this.#masters = masters;
  }

  /** The secret to verify with, as `whsec_` and base64. */
  current(owner: string | null, url: string): string {
    const [key = Buffer.alloc(0)] = this.#keysOf(owner, url);
    return `whsec_${key.toString('base64')}`;
  }

  /** The header `webhook-signature` of Standard Webhooks: a signature for each master. */
  sign(owner: string | null, url: string, signed: { id: string; timestamp: number; body: string }): string {
    const text = `${signed.id}.${signed.timestamp}.${signed.body}`;
    return this.#keysOf(owner, url)
      .map((key) => `v1,${createHmac('sha256', key).update(text).digest('base64')}`)
      .join(' ');
  }

  #keysOf(owner: string | null, url: string): Buffer[] {
    const { origin } = new URL(url);
    // Owners have no spaces, and neither have origins.
    return this.#masters.map((master) =>
      createHmac('sha256', master)
        .update(`${owner ?? ''} ${origin}`)
        .digest(),
    );
  }
}
