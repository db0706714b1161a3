import { type Static, Type } from '@sinclair/typebox';
import type { FastifyRequest } from 'fastify';
import { isObject } from '../../core/json.ts';
import { toolHeadersIn } from '../../core/tool-headers.ts';
import { open } from '../../core/validate.ts';
import { newId } from '../../engine/ids.ts';
import { uuidPattern } from '../../schema/formats.ts';
import { RpcError, type RpcMessage } from './json-rpc.ts';

// The protocol has two eras at one address. The modern one has no sessions: each request says what its client can do, in
// its `_meta`, and repeats in its headers what proxies look for. The older one begins with `initialize`.

export const modernVersion = '2026-07-28';
/** Of the older era, the newest first. */
export const olderVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const;
export const versions = [modernVersion, ...olderVersions] as const;

const metaKey = 'io.modelcontextprotocol/';
/** The extension of runs that take long. */
export const tasksExtension = `${metaKey}tasks`;
export const subscriptionKey = `${metaKey}subscriptionId`;
export const serverInfoKey = `${metaKey}serverInfo`;

export const Capabilities = open({
  elicitation: Type.Optional(open({ form: Type.Optional(open({})), url: Type.Optional(open({})) })),
  extensions: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
type Capabilities = Static<typeof Capabilities>;

/** What a request says of its client. */
export interface Client {
  readonly modern: boolean;
  readonly version: string;
  /** Whether the client shows forms to its user. */
  readonly elicits: boolean;
  /** Whether the client asks for the state of runs that take long. */
  readonly tasks: boolean;
  /** The session of an older client, which gives its requests their ids. */
  readonly session: string | undefined;
}

/** A client that says nothing of a mode has forms. */
const showsForms = ({ elicitation }: Capabilities): boolean =>
  elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);

/** Nothing is stored for a session: its id itself says what the client can do. */
export const sessionOf = (capabilities: Capabilities): string => `${newId()}${showsForms(capabilities) ? '' : noForms}`;

const noForms = '.noforms';
const sessionPattern = new RegExp(`^${uuidPattern}(?:\\${noForms})?$`);

/**
 * The client of a message. Without any sign of the modern era, it is an older one.
 * @throws RpcError where its headers and its `_meta` do not agree, or name a version that is not served
 */
export function clientOf(headers: FastifyRequest['headers'], { kind, message }: RpcMessage): Client {
  const [version, method] = [headerOf(headers, 'mcp-protocol-version'), headerOf(headers, 'mcp-method')];
  const params = 'params' in message && isObject(message.params) ? message.params : {};
  const meta = isObject(params._meta) ? params._meta : {};
  const claimed = meta[`${metaKey}protocolVersion`];
  const namesOlder = version !== undefined && isOlder(version);
  // `mcp-remote` sends `Mcp-Method` with the `initialize` of the older era, before a version is agreed on.
  const isInitialize = 'method' in message && message.method === 'initialize';
  const hasModernHeader = method !== undefined && !namesOlder && !isInitialize;
  const isModern = claimed !== undefined || version === modernVersion || hasModernHeader;
  if (!isModern) return olderClient(headers, version);
  if (kind !== 'request')
    return { modern: true, version: modernVersion, elicits: false, tasks: false, session: undefined };
  checkSame('MCP-Protocol-Version', version, claimed);
  checkSame('Mcp-Method', method, 'method' in message ? message.method : undefined);
  if (version !== modernVersion) {
    throw new RpcError('unsupportedVersion', `Version ${version} is not served with this header; see data.supported`, {
      status: 400,
      data: { supported: versions, requested: version },
    });
  }
  checkName(headers, 'method' in message ? message.method : '', params);
  if (claimed === undefined) throw invalidMeta(`${metaKey}protocolVersion`, `expected ${modernVersion}`);
  const capabilities = capabilitiesIn(meta);
  return {
    modern: true,
    version: modernVersion,
    elicits: showsForms(capabilities),
    tasks: capabilities.extensions?.[tasksExtension] !== undefined,
    session: undefined,
  };
}

function capabilitiesIn(meta: Readonly<Record<string, unknown>>): Capabilities {
  const key = `${metaKey}clientCapabilities`;
  const capabilities = meta[key];
  if (!isObject(capabilities)) throw invalidMeta(key, 'expected an object');
  const { elicitation, extensions } = capabilities;
  return {
    ...(isObject(elicitation) && { elicitation }),
    ...(isObject(extensions) && { extensions }),
  };
}

const invalidMeta = (key: string, problem: string): RpcError =>
  new RpcError('invalidParams', `params._meta["${key}"]: ${problem}`, { status: 400 });

function olderClient(headers: FastifyRequest['headers'], version: string | undefined): Client {
  if (version !== undefined && !isOlder(version)) {
    throw new RpcError('invalidRequest', `MCP-Protocol-Version: expected one of ${versions.join(', ')}`, {
      status: 400,
    });
  }
  const session = headerOf(headers, 'mcp-session-id');
  const isOwn = session !== undefined && sessionPattern.test(session);
  return {
    modern: false,
    // What the specification says where the header is absent.
    version: version ?? '2025-03-26',
    // An unknown client is asked: its refusal is a reply as well.
    elicits: session?.endsWith(noForms) !== true,
    tasks: false,
    session: isOwn ? session : undefined,
  };
}

export const isOlder = (version: string): boolean => olderVersions.some((known) => known === version);

const headerOf = (headers: FastifyRequest['headers'], name: string): string | undefined => {
  const value = headers[name];
  return value === undefined ? undefined : String(value).trim();
};

function checkSame(name: string, header: string | undefined, inBody: unknown): void {
  if (header === undefined) throw mismatch(`${name} is absent; send what the body says`);
  if (inBody !== undefined && header !== inBody) throw mismatch(`${name} is not what the body says`);
}

/** The field of the params that `Mcp-Name` repeats. */
const named = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

function checkName(
  headers: FastifyRequest['headers'],
  method: string,
  params: Readonly<Record<string, unknown>>,
): void {
  const field = named.get(method);
  const inBody = field === undefined ? undefined : params[field];
  if (typeof inBody !== 'string') return;
  const header = headerOf(headers, 'mcp-name');
  checkSame('Mcp-Name', header === undefined ? undefined : decoded('Mcp-Name', header), inBody);
}

/** The text of a header that may have characters that headers cannot have. @throws RpcError */
function decoded(name: string, header: string): string {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(header) ?? [];
  if (base64 === undefined) return header;
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) throw mismatch(`${name} is no base64`);
  return bytes.toString();
}

const mismatch = (problem: string): RpcError => new RpcError('headerMismatch', problem, { status: 400 });

type Values = Readonly<Record<string, unknown>>;

/** Checks that the headers of a call repeat the arguments that its tool names. @throws RpcError */
export function checkParamHeaders(headers: FastifyRequest['headers'], schema: Values, args: Values): void {
  for (const { name, path } of toolHeadersIn(schema)) {
    const header = `Mcp-Param-${name}`;
    const sent = headers[header.toLowerCase()];
    const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), args);
    // Clients leave these out; so do they numbers that they cannot write exactly.
    if (!isPrimitive(value) || (typeof value === 'number' && !Number.isSafeInteger(value))) continue;
    const argument = `the argument ${path.join('.')}`;
    if (sent === undefined) throw mismatch(`${header} is absent; send ${argument}`);
    const text = decoded(header, String(sent).trim());
    const isSame = typeof value === 'number' ? isNumber.test(text) && Number(text) === value : text === String(value);
    if (!isSame) throw mismatch(`${header} is not ${argument} of the body`);
  }
}

const isPrimitive = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);

/** 42 and 42.0 are the same. */
const isNumber = /^-?\d+(\.\d+)?$/;
