import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** GET answers with a stream where the request accepts one. */
    streams?: true;
  }
}

/**
 * Whether a header such as `Accept` lists a value, ignoring case, with a weight other than zero. Wildcards do not
 * match.
 */
export function listsValue(header: string | undefined, value: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => {
    const [name = '', ...parameters] = item.split(';').map((text) => text.trim().toLowerCase());
    return name === value && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

/** Whether a request accepts an event stream. */
const wantsStream = ({ headers }: FastifyRequest): boolean => listsValue(headers.accept, 'text/event-stream');

/** Whether a request is answered with a stream, as that of an EventSource. Others may accept one as well. */
export const readsStream = (request: FastifyRequest): boolean =>
  request.method === 'GET' && request.routeOptions.config.streams === true && wantsStream(request);

/** Whether `If-None-Match` has this ETag; strong and weak tags are equal. */
export function matchesEtag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || [...header.matchAll(/"[^"]*"/g)].some(([found]) => found === tag);
}
