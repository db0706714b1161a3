import { type Static, Type } from '@sinclair/typebox';
import type { FastifyReply } from 'fastify';
import { type ErrorName, RivuletError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { compile, open } from '../../core/validate.ts';
import type { Refusal } from '../../http/requests/errors.ts';

/** The id of a request; answers have it with the same type. */
export const RpcId = Type.Union([Type.String({ maxLength: 200 }), Type.Integer()]);
export type RpcId = Static<typeof RpcId>;

const version = Type.Literal('2.0');
const Params = Type.Optional(Type.Record(Type.String(), Type.Unknown()));

const Request = open({ jsonrpc: version, id: RpcId, method: Type.String(), params: Params });
export type RpcRequest = Static<typeof Request>;
const Notification = open({ jsonrpc: version, method: Type.String(), params: Params });
export type RpcNotification = Static<typeof Notification>;
const Response = open({
  jsonrpc: version,
  id: RpcId,
  result: Type.Optional(Type.Unknown()),
  error: Type.Optional(Type.Unknown()),
});
export type RpcResponse = Static<typeof Response>;

/** A message of a client. */
export type RpcMessage =
  | { readonly kind: 'request'; readonly message: RpcRequest }
  | { readonly kind: 'notification'; readonly message: RpcNotification }
  | { readonly kind: 'response'; readonly message: RpcResponse };

/** The errors of the protocol: JSON-RPC's own codes, and those of MCP. */
export const rpcCodes = {
  parse: -32700,
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** A request that is refused in the words of the protocol. */
export class RpcError extends Error {
  readonly code: number;
  readonly status: number;
  readonly data: object | undefined;

  /** `status` is that of HTTP. An error that belongs to a request is a JSON-RPC answer like any other: 200. */
  constructor(
    code: keyof typeof rpcCodes,
    message: string,
    { status = 200, data }: { status?: number; data?: object } = {},
  ) {
    super(message);
    this.code = rpcCodes[code];
    this.status = status;
    this.data = data;
  }
}

const checkRequest = compile(Request, 'message');
const checkNotification = compile(Notification, 'message');
const checkResponse = compile(Response, 'message');

/** @throws RpcError for a batch, and for what is no message */
export function messageIn(body: unknown): RpcMessage {
  if (Array.isArray(body)) throw invalid('expected one message, got a batch; send each by itself');
  try {
    if (!isObject(body) || !('method' in body)) {
      const message = checkResponse(body);
      // Without any, it would count as a refusal, which cancels the run.
      if (message.result === undefined && message.error === undefined) throw invalid('expected a result or an error');
      return { kind: 'response', message };
    }
    return 'id' in body
      ? { kind: 'request', message: checkRequest(body) }
      : { kind: 'notification', message: checkNotification(body) };
  } catch (error) {
    throw error instanceof RivuletError ? invalid(error.message) : error;
  }
}

const invalid = (problem: string): RpcError =>
  new RpcError('invalidRequest', `This is no message of JSON-RPC 2.0: ${problem}`, { status: 400 });

export const resultOf = (id: RpcId, result: object): object => ({ jsonrpc: '2.0', id, result });

export const errorOf = (
  id: RpcId | null,
  { code, message, data }: Pick<RpcError, 'code' | 'message' | 'data'>,
): object => ({ jsonrpc: '2.0', id, error: { code, message, data } });

export function sendRpcError(reply: FastifyReply, id: RpcId | null, error: RpcError): FastifyReply {
  return send(reply.code(error.status), errorOf(id, error));
}

const send = (reply: FastifyReply, body: object): FastifyReply =>
  reply.type('application/json; charset=utf-8').send(JSON.stringify(body));

/** The statuses of errors that name what a client has sent: JSON-RPC's invalid params. */
const ofParams = new Set([404, 409, 410, 422]);

/** The id of the request that an error answers, where its body was read. */
export function idIn(body: unknown): RpcId | null {
  const id = isObject(body) && 'method' in body ? body.id : undefined;
  return typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id)) ? id : null;
}

/**
 * An error as JSON-RPC. Where it belongs to a request of the protocol, the status is 200, because older clients read no
 * body of any other; a client that should come back later, or send credentials, has to see the status.
 */
export function sendRefusal(reply: FastifyReply, { status, reason, body }: Refusal): void {
  const id = idIn(reply.request.body);
  const isOfParams = ofParams.has(status);
  if (isOfParams && id !== null) reply.code(200);
  else if (status === 422) reply.code(400);
  const code = isOfParams ? rpcCodes.invalidParams : codeOf(reason, status);
  send(reply, errorOf(id, { code, message: body.message, data: body.data }));
}

function codeOf(reason: ErrorName, status: number): number {
  if (reason === 'body_not_json') return rpcCodes.parse;
  return status >= 500 || status === 429 ? rpcCodes.internal : rpcCodes.invalidRequest;
}
