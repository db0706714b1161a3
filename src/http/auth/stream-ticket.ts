import type { FastifyRequest } from 'fastify';
import { hasScope, type Principal } from '../../core/principal.ts';
import type { Signatures } from './signatures.ts';

/** A permission to read the events of one run. */
export interface Ticket {
  readonly run_id: string;
  /** The principal that asked for the ticket, with no scope but reading. */
  readonly principal: Principal;
}

/** What a ticket says; the holder can read it, so it has no claims. */
interface Payload {
  readonly run: string;
  /** Epoch, seconds. */
  readonly exp: number;
  readonly id: string;
  readonly kind: Principal['kind'];
  readonly tenant?: string;
  readonly admin?: true;
}

/** Milliseconds. An EventSource reconnects with the same address, so a ticket lives for longer than one connection. */
const lifetime = 15 * 60_000;
const purpose = 'stream ticket';
const maxLength = 4_096;
const form = /^rvs_([\w-]+)\.([\w-]{43})$/;

/** Makes and checks tickets. They are signed, so that no server has to store them. */
export class StreamTickets {
  readonly #signatures: Signatures;

  constructor(signatures: Signatures) {
    this.#signatures = signatures;
  }

  issue(principal: Principal, run_id: string): { ticket: string; expires_at: string } {
    const { id, kind, tenant } = principal;
    const exp = Math.floor((Date.now() + lifetime) / 1_000);
    const payload: Payload = {
      run: run_id,
      exp,
      id,
      kind,
      tenant,
      ...(hasScope(principal, 'admin') && { admin: true }),
    };
    const text = Buffer.from(JSON.stringify(payload)).toString('base64url');
    return {
      ticket: `rvs_${text}.${this.#signatures.sign(purpose, text)}`,
      expires_at: new Date(exp * 1_000).toISOString(),
    };
  }

  /** The content of a ticket; undefined where it is forged, cut or expired. */
  read(ticket: string): Ticket | undefined {
    if (ticket.length > maxLength) return undefined;
    const [, text = '', given = ''] = form.exec(ticket) ?? [];
    if (!this.#signatures.isSigned(purpose, text, given)) return undefined;
    // Signed by this server, so the text is a payload.
    const { run, exp, id, kind, tenant, admin }: Payload = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (exp * 1_000 <= Date.now()) return undefined;
    const scopes = admin ? ['runs:read', 'admin'] : ['runs:read'];
    return { run_id: run, principal: { id, kind, tenant, scopes } };
  }
}

// How a stream ticket travels: in the query of an address, or in a cookie.

const parameter = 'ticket';
const cookie = 'rivulet_ticket';

/** The address of a run's events with a ticket. */
export const addressWith = (path: string, ticket: string): string => `${path}?${parameter}=${ticket}`;

/** `Set-Cookie` for a ticket. Browsers send the cookie to this path only, and never from pages of other sites. */
export const cookieWith = (path: string, ticket: string): string =>
  `${cookie}=${ticket}; Path=${path}; HttpOnly; Secure; SameSite=Strict`;

/** The ticket in the query; an empty text, which no ticket is, where there are several. */
export function queryTicketOf({ query }: FastifyRequest): string | undefined {
  const value: unknown = Reflect.get(Object(query), parameter);
  return value === undefined || typeof value === 'string' ? value : '';
}

export function cookieTicketOf({ headers }: FastifyRequest): string | undefined {
  const pair = headers.cookie?.split(';').find((text) => text.trim().startsWith(`${cookie}=`));
  return pair?.trim().slice(cookie.length + 1);
}
