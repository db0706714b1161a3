import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fail, RivuletError } from '../../core/errors.ts';
import type { Quotas } from '../../core/ports/quotas.ts';
import { hasScope, type Scope } from '../../core/principal.ts';
import type { ServerUrl } from '../server-url.ts';
import type { TrafficObserver } from '../traffic.ts';
import { challenge, type Resource, serveMetadata, tokenOf } from './bearer.ts';
import type { AuthOptions, Verdict, Verifier } from './credentials.ts';
import { FailedAttempts } from './failed-attempts.ts';
import { Signatures } from './signatures.ts';
import { cookieTicketOf, queryTicketOf, StreamTickets } from './stream-ticket.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a principal needs to call the route. */
    scope?: Scope;
    /** The route answers without credentials. */
    open?: true;
    /** The route reads the events of the run `:run_id`, which a stream ticket allows as well. */
    ticket?: true;
  }
  interface FastifyRequest {
    /** Whether a stream ticket authenticated the request: its reader may not change the run, not even by leaving. */
    hasTicket: boolean;
  }
}

/** What callers send: API keys, tokens of an issuer, or what the app's own scheme reads. */
export type CredentialKind = 'key' | 'jwt' | 'custom';

/** The credentials that a server accepts; none where authentication is off. */
export function credentialKinds({ keys, keyFile, jwt, authenticate: own }: AuthOptions = {}): CredentialKind[] {
  const accepted = { key: keys ?? keyFile, jwt, custom: own };
  return (['key', 'jwt', 'custom'] as const).filter((kind) => accepted[kind] !== undefined);
}

/** Fails the start for a route that does not declare a scope, or that it is open. */
function requireAccess(app: FastifyInstance): void {
  app.addHook('onRoute', ({ method, url, config }) => {
    if (config?.scope !== undefined || config?.open) return;
    throw new Error(`${method} ${url}: expected config: { scope: 'runs:read' } or config: { open: true }; got neither`);
  });
}

/** What authentication gives to routes. */
export interface Authentication {
  /** What makes stream tickets; undefined where authentication is off. */
  readonly tickets: StreamTickets | undefined;
  readonly signatures: Signatures;
  /** Whether the credentials of a request that was let in still hold; undefined where authentication is off. */
  readonly holds: ((request: FastifyRequest) => Promise<boolean>) | undefined;
}

/**
 * Authenticates every request of the routes that are registered later, before its body is read.
 * @throws Error that names a wrong option or file
 */
export async function authenticate(
  app: FastifyInstance,
  options: AuthOptions | undefined,
  url: ServerUrl,
  traffic: TrafficObserver,
  quotas: Quotas,
): Promise<Authentication> {
  requireAccess(app);
  app.decorateRequest('hasTicket', false);
  if (options === undefined) return { tickets: undefined, signatures: Signatures.withoutSecret(), holds: undefined };
  const { keys, keyFile, jwt, authenticate: own, ticketSecrets } = options;
  if ([keys, keyFile, jwt, own].every((scheme) => scheme === undefined)) {
    throw new Error('auth: expected keys, keyFile, jwt or authenticate; got none');
  }
  const resource: Resource = { url, issuer: jwt?.issuer };
  const failures = new FailedAttempts(quotas);
  // Only now: most of a start without authentication would go to the libraries of tokens and of key files.
  const { Verifier } = await import('./credentials.ts');
  const verifier = new Verifier(options, {
    warn: (fields, message) => app.log.error(fields, message),
    isLimited: (ip) => failures.waitOf(ip) !== undefined,
  });
  app.addHook('onClose', async () => verifier.close());
  const signatures = new Signatures(ticketSecrets);
  const tickets = new StreamTickets(signatures);
  const gate = new Gate({ verifier, tickets, failures, resource, traffic });
  app.addHook('onRequest', (request, reply) => gate.check(request, reply));
  if (jwt !== undefined) serveMetadata(app, resource);
  return { tickets, signatures, holds: (request) => gate.holds(request) };
}

interface GateParts {
  readonly verifier: Verifier;
  readonly tickets: StreamTickets;
  readonly failures: FailedAttempts;
  readonly resource: Resource;
  readonly traffic: TrafficObserver;
}

/** Lets requests in. Refusals are thrown; where the client would not come back after one, the connection is broken. */
class Gate {
  readonly #parts: GateParts;

  constructor(parts: GateParts) {
    this.#parts = parts;
  }

  async check(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { config } = request.routeOptions;
    if (config.open || request.method === 'OPTIONS') return;
    if (config.ticket && tokenOf(request.headers) === undefined) {
      const inQuery = queryTicketOf(request);
      const ticket = inQuery ?? cookieTicketOf(request);
      if (ticket !== undefined) return this.#checkTicket(request, reply, ticket, inQuery === undefined);
    }
    const { headers, method, url, ip } = request;
    const verdict = await this.#parts.verifier
      .verify({ headers, method, url, ip })
      .catch((error) => this.#undecided(request, reply, error));
    this.#settle(request, reply, verdict);
  }

  /** A ticket ends by itself: it is checked when a connection begins. */
  async holds({ principal, hasTicket, headers, method, url, ip }: FastifyRequest): Promise<boolean> {
    return principal === undefined || hasTicket || this.#parts.verifier.holds({ headers, method, url, ip }, principal);
  }

  #checkTicket(request: FastifyRequest, reply: FastifyReply, text: string, isCookie: boolean): void {
    const ticket = this.#parts.tickets.read(text);
    const run_id: unknown = Reflect.get(Object(request.params), 'run_id');
    if (ticket !== undefined && typeof run_id === 'string' && ticket.run_id === run_id.toLowerCase()) {
      request.principal = ticket.principal;
      request.hasTicket = true;
      // Caches keep answers to requests without `Authorization`, for longer than the ticket lives.
      reply.header('Cache-Control', 'no-store');
      this.#parts.traffic.onAuthentication('ticket', 'accepted');
      return;
    }
    this.#parts.traffic.onAuthentication('ticket', 'refused');
    // An EventSource ends at a 401, so that its page can ask for another ticket, which has another address. A cookie
    // can be renewed under the same address: there the connection breaks, and the EventSource reconnects. It may do so
    // for long, so it does not count as a failure: that would refuse new tokens of its user as well.
    if (!isCookie) {
      this.#parts.failures.add(request.ip);
      throw this.#refusal(request, reply, fail('ticket_refused'));
    }
    reply.hijack();
    request.raw.destroy();
  }

  #settle(request: FastifyRequest, reply: FastifyReply, verdict: Verdict): void {
    const { scope } = request.routeOptions.config;
    if (verdict === 'absent') {
      reply.header('WWW-Authenticate', challenge(request, this.#parts.resource, { scope }));
      throw fail('unauthenticated', 'The request has no credentials');
    }
    if (verdict === undefined) {
      this.#parts.traffic.onAuthentication('unknown', 'refused');
      this.#parts.failures.add(request.ip);
      throw this.#refusal(request, reply, fail('unauthenticated', 'The credentials are wrong, or have expired'));
    }
    this.#parts.traffic.onAuthentication(verdict.kind, 'accepted');
    // A path without a route has no scope.
    if (scope !== undefined && !hasScope(verdict, scope)) {
      const problem = { error: 'insufficient_scope', scope } as const;
      reply.header('WWW-Authenticate', challenge(request, this.#parts.resource, problem));
      throw fail('scope_missing', scope);
    }
    request.principal = verdict;
  }

  /** 401, or 429 where the address has sent too many wrong credentials. */
  #refusal(request: FastifyRequest, reply: FastifyReply, error: RivuletError): RivuletError {
    const wait = this.#parts.failures.waitOf(request.ip);
    if (wait !== undefined) {
      reply.header('Retry-After', String(wait));
      return fail('rate_limited');
    }
    const { scope } = request.routeOptions.config;
    reply.header('WWW-Authenticate', challenge(request, this.#parts.resource, { error: 'invalid_token', scope }));
    return error;
  }

  /** What an error of the verifier means: it goes on, or the request is refused like one with wrong credentials. */
  #undecided(request: FastifyRequest, reply: FastifyReply, error: unknown): undefined {
    if (error instanceof RivuletError)
      throw error.kind === 'rate_limited' ? this.#refusal(request, reply, error) : error;
    // Only the app's own scheme throws other errors. What it cannot decide is refused.
    request.log.error({ err: error }, 'authenticate threw; the request is refused');
  }
}
