import type { FastifyRequest } from 'fastify';

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
