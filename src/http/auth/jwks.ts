import { type CryptoKey, createLocalJWKSet, errors, type FlattenedJWSInput, type JWSHeaderParameters } from 'jose';
import { fail, type RivuletError } from '../../core/errors.ts';
import { withDeadline } from '../../core/timing.ts';

type Resolver = ReturnType<typeof createLocalJWKSet>;

/** Finds the public key of a token. @throws error of jose where no key fits, or RivuletError `auth_unavailable` */
export type FindKey = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>;

/** The keys of a JWKS document. @throws Error where the text is none */
export const parseKeySet = (text: string): Resolver => createLocalJWKSet(JSON.parse(text));

const maxChars = 1024 * 1024;

export interface RemoteKeySetOptions {
  readonly url: string;
  /** Called when keys were read, and may be others than before. */
  readonly onChange: () => void;
  readonly onProblem: (error: Error) => void;
  /** Milliseconds after which the keys are read again. Default 10 minutes. */
  readonly maxAge?: number;
  /** Minimum milliseconds between two reads, so that unknown keys in tokens cannot make the server flood the provider. Default 30,000. */
  readonly coolDown?: number;
  /** Milliseconds for which the last keys are used while the provider does not answer. Default a day. */
  readonly keepFor?: number;
  /** Milliseconds for a whole answer. Default 5,000. */
  readonly timeout?: number;
}

/**
 * The keys of a token issuer, read over HTTP. They are read again when they are old, or when a token names an unknown
 * key. While the issuer does not answer, the last keys stay in use.
 */
export class RemoteKeySet {
  readonly #options: Required<RemoteKeySetOptions>;
  #keys: Resolver | undefined;
  #text = '';
  #readAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: RemoteKeySetOptions) {
    this.#options = { maxAge: 600_000, coolDown: 30_000, keepFor: 86_400_000, timeout: 5_000, ...options };
  }

  readonly find: FindKey = async (header, token) => {
    const { maxAge, keepFor } = this.#options;
    const age = performance.now() - this.#readAt;
    if (age > maxAge) {
      const read = this.#read();
      // Old keys are good enough for this token; the new ones are for later ones.
      if (age > keepFor) await read;
    }
    try {
      return await this.#current()(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      const before = this.#keys;
      await this.#read();
      if (this.#keys === before) throw error;
      return this.#current()(header, token);
    }
  };

  #current(): Resolver {
    if (this.#keys === undefined || performance.now() - this.#readAt > this.#options.keepFor) throw unavailable();
    return this.#keys;
  }

  /** Reads the keys, unless that was tried a moment ago. Never rejects. */
  #read(): Promise<void> {
    if (this.#reading !== undefined) return this.#reading;
    if (performance.now() - this.#triedAt < this.#options.coolDown) return Promise.resolve();
    this.#triedAt = performance.now();
    this.#reading = withDeadline(this.#options.timeout, (signal) => this.#fetch(signal))
      .catch((cause: unknown) => {
        this.#options.onProblem(new Error(`the keys at ${this.#options.url} could not be read`, { cause }));
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #fetch(signal: AbortSignal): Promise<void> {
    const { url } = this.#options;
    // A redirect could lead to keys that the configuration does not name.
    const response = await fetch(url, { redirect: 'error', signal });
    if (!response.ok) {
      // It may be endless.
      await response.body?.cancel();
      throw new Error(`expected status 200; got ${response.status}`);
    }
    const text = await readText(response, signal);
    if (text !== this.#text) {
      this.#keys = parseKeySet(text);
      this.#text = text;
      this.#options.onChange();
    }
    this.#readAt = performance.now();
  }
}

const unavailable = (): RivuletError => fail('auth_unavailable');

/** The signal of a `fetch` may be collected before it ends the body, so it is given to the body as well. */
async function readText({ body }: Response, signal: AbortSignal): Promise<string> {
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream(), { signal }) ?? []) {
    text += chunk;
    if (text.length > maxChars) throw new Error(`expected at most ${maxChars} characters`);
  }
  return text;
}
