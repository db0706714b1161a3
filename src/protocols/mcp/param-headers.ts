import type { FastifyRequest } from 'fastify';
import { isObject } from '../../core/json.ts';
import { toolHeadersIn } from '../../core/tool-headers.ts';
import { decoded, mismatch } from './client.ts';

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
