import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { minSecretLength } from '../limits/limits.ts';

/** Signs what clients hold for this server and give back, so that no server has to store it. */
export class Signatures {
  readonly #secrets: readonly string[];

  /**
   * The first secret signs; all are accepted, so that secrets can be rotated. Without any, signatures are good for this
   * process only.
   * @throws Error where a secret is too short
   */
  constructor(secrets: readonly string[] = []) {
    if (secrets.some((secret) => secret.length < minSecretLength)) {
      throw new Error(`auth.ticketSecrets: expected at least ${minSecretLength} characters each`);
    }
    this.#secrets = secrets.length > 0 ? secrets : [randomBytes(32).toString('base64url')];
  }

  /** Where every caller may do everything: they only show that a text has come back as it was, on any node. */
  static withoutSecret(): Signatures {
    return new Signatures(['-'.repeat(minSecretLength)]);
  }

  /** The signature of a text, in 43 characters. The purpose keeps it from being valid for anything else that is signed. */
  sign(purpose: string, text: string): string {
    const [secret = ''] = this.#secrets;
    return macOf(secret, purpose, text).toString('base64url');
  }

  isSigned(purpose: string, text: string, signature: string): boolean {
    const given = Buffer.from(signature, 'base64url');
    return given.length === 32 && this.#secrets.some((secret) => timingSafeEqual(macOf(secret, purpose, text), given));
  }
}

const macOf = (secret: string, purpose: string, text: string): Buffer =>
  createHmac('sha256', secret).update(`rivulet ${purpose} ${text}`).digest();
