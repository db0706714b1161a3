import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Access } from '../engine/access.ts';
import type { CredentialKind } from '../http/auth/authenticate.ts';
import type { Signatures } from '../http/auth/signatures.ts';
import type { HttpLimits } from '../http/limits/limits.ts';
import type { AccessOf } from '../http/requests/caller.ts';
import { type AnswerBelow, type Refusal, refuse } from '../http/requests/errors.ts';
import type { Responder } from '../http/requests/respond.ts';
import type { ServerUrl } from '../http/server-url.ts';

/** What the routes of a protocol are given. */
export interface ProtocolOptions {
  readonly access: AccessOf;
  readonly responder: Responder;
  readonly limits: HttpLimits;
  /** What a caller without credentials may see. */
  readonly visitor: Access;
  /** The credentials that callers send; empty where authentication is off. */
  readonly credentials: readonly CredentialKind[];
  readonly url: ServerUrl;
  /** Signs what clients hold for this server. */
  readonly signatures: Signatures;
  /** Answers requests that match no route, below the prefix. */
  readonly answerBelow: AnswerBelow;
  /** Of this server. */
  readonly version: string;
  /** The path before the routes of this server, without a slash at its end; for addresses in answers. */
  readonly base: string;
  /** The path of the protocol's routes after that; may be empty. */
  readonly prefix: string;
}

/** Where a protocol is served, below the URL of the server. */
export interface ProtocolAddress {
  readonly protocol: string;
  /** What its clients are called. */
  readonly clients: string;
  /** `{agent}` stands for the name of an agent, and `{run_id}` for a run. */
  readonly path: string;
}

/** Answers errors of a protocol's routes in its own words, and requests below its prefix that match none of them. */
export function answerErrors(
  app: FastifyInstance,
  { prefix, answerBelow }: Pick<ProtocolOptions, 'prefix' | 'answerBelow'>,
  send: (reply: FastifyReply, refusal: Refusal) => void,
): void {
  const answer = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
    send(reply, refuse(error, request, reply));
  app.setErrorHandler(answer);
  // Without a prefix, unknown addresses are the server's.
  if (prefix.length > 1) answerBelow(app.prefix, answer);
}
