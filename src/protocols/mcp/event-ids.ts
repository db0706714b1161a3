import { Type } from '@sinclair/typebox';
import { fail, RivuletError } from '../../core/errors.ts';
import { compile } from '../../core/validate.ts';
import { uuidPattern } from '../../schema/formats.ts';
import { jsonIn } from '../part-kinds.ts';
import { RpcId } from './json-rpc.ts';

/** How the frames of a call are written: what its request says, and nothing of its run. */
export interface Call {
  readonly id: RpcId;
  /** Repeated in each progress notification. Absent: the client wants none. */
  readonly token?: RpcId;
  readonly modern: boolean;
  /** Whether the client can be asked: a modern one by the result, an older one by a request in the stream. */
  readonly asks: boolean;
  /** Whether each token is a notification of its own; otherwise the last line of the text so far is, every now and then. */
  readonly everyToken: boolean;
}

// The id of an event of a stream has all that its frames need, so that any node goes on with them, and nothing is stored.

const Parts = Type.Tuple([RpcId, Type.Union([RpcId, Type.Null()]), Type.String({ pattern: '^m?a?t?$' })]);
const checkParts = compile(Parts, 'the call');
const idPattern = new RegExp(`^(${uuidPattern})\\.([\\w-]{1,2000})\\.(\\d{1,15})$`);

/** The ids of the events of a stream, up to the number of the event. */
export function eventIds(run_id: string, { id, token, modern, asks, everyToken }: Call): string {
  const flags = `${modern ? 'm' : ''}${asks ? 'a' : ''}${everyToken ? 't' : ''}`;
  return `${run_id}.${Buffer.from(JSON.stringify([id, token ?? null, flags])).toString('base64url')}.`;
}

/** The run, the call and the number of an event. @throws RivuletError `cursor_invalid` */
export function placeIn(eventId: string): { readonly run_id: string; readonly call: Call; readonly n: number } {
  const [, run_id, text = '', n] = idPattern.exec(eventId) ?? [];
  const parts = jsonIn(Buffer.from(text, 'base64url').toString())?.value;
  try {
    if (run_id === undefined) throw fail('cursor_invalid', 'Last-Event-ID', eventId.slice(0, 100));
    const [id, token, flags] = checkParts(parts);
    const [modern, asks, everyToken] = ['m', 'a', 't'].map((flag) => flags.includes(flag));
    const call = { id, ...(token !== null && { token }), modern: modern === true, asks: asks === true };
    return { run_id, call: { ...call, everyToken: everyToken === true }, n: Number(n) };
  } catch (error) {
    if (!(error instanceof RivuletError)) throw error;
    throw fail('cursor_invalid', 'Last-Event-ID', eventId.slice(0, 100));
  }
}
