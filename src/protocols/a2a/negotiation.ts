import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail } from '../../core/errors.ts';
import { listsValue } from '../../http/requests/negotiation.ts';
import { extension } from '../../schema/a2a-extension.ts';

/** The version of the protocol, as its clients and cards name it. */
export const version = '1.0';

const ownJson = 'application/a2a+json';

/**
 * The content type of an answer by HTTP and JSON. The protocol has one of its own, which clients of 1.0.0 do not all read: it
 * is for a client that accepts it, or that has sent it and accepts anything.
 */
export function contentTypeFor({ headers }: FastifyRequest): string {
  const { accept = '*/*', 'content-type': sent = '' } = headers;
  const isOwn = listsValue(accept, ownJson) || (sent.startsWith(ownJson) && !listsValue(accept, 'application/json'));
  return `${isOwn ? ownJson : 'application/json'}; charset=utf-8`;
}

/**
 * Checks the version that a request names, in a header or in the query. None means 0.3, which is another protocol.
 * Returns whether the client has named the extension of cursors, and says so in the answer.
 * @throws RivuletError `version_unsupported`
 */
export function negotiate({ headers, query }: FastifyRequest, reply: FastifyReply): boolean {
  const inQuery: unknown = Reflect.get(Object(query), 'A2A-Version');
  const named = String(headers['a2a-version'] || inQuery || '').trim();
  if (!/^1\.0(\.\d+)?$/.test(named))
    throw fail('version_unsupported', `A2A-Version: expected ${version}; got ${named.slice(0, 60) || 'none'}`);
  const cursors = listsValue(String(headers['a2a-extensions'] ?? ''), extension.cursor);
  if (cursors) reply.header('A2A-Extensions', extension.cursor);
  return cursors;
}
