import type { FastifyRequest } from 'fastify';

/**
 * Whether a header that lists what a client takes, such as `Accept`, names a value in any case and does not give it
 * the weight zero. Wildcards do not name it.
 */
export function names(header: string | undefined, value: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => {
    const [name = '', ...parameters] = item.split(';').map((one) => one.trim().toLowerCase());
    return name === value && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

/** Whether a request asks for a stream, where its path has one. */
export const wantsStream = ({ headers }: FastifyRequest): boolean => names(headers.accept, 'text/event-stream');

/** Whether `If-None-Match` has the tag that a file has now; strong and weak tags compare as equal. */
export function hasTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || [...header.matchAll(/"[^"]*"/g)].some(([one]) => one === tag);
}
