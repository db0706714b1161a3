import type { IncomingHttpHeaders } from 'node:http';
import { isOnDisconnect } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import type { RunOptions } from '../../engine/runs/create.ts';
import type { RunHeaders } from '../../schema/api.ts';

/** The options of a run in the headers of its request. */
export const runOptions = (headers: RunHeaders): RunOptions => ({
  ...(headers['idempotency-key'] !== undefined && { idempotency_key: headers['idempotency-key'] }),
  ...(headers['if-busy'] !== undefined && { if_busy: headers['if-busy'] }),
  ...(headers['on-disconnect'] !== undefined &&
    isOnDisconnect(headers['on-disconnect']) && { on_disconnect: headers['on-disconnect'] }),
  ...(headers['rivulet-channel'] !== undefined && { channel: headers['rivulet-channel'] }),
  ...(headers.traceparent !== undefined && {
    trace: { traceparent: headers.traceparent, tracestate: headers.tracestate },
  }),
});

/** The id of the last event that a client has; undefined where the request has none. */
export function lastEventIdIn({ headers }: { readonly headers: IncomingHttpHeaders }): string | undefined {
  const id = String(headers['last-event-id'] ?? '');
  return id === '' ? undefined : id;
}

/** @throws RivuletError `cursor_invalid` */
export function cursorIn(name: string, given: string): number {
  if (!/^\d{1,15}$/.test(given)) throw fail('cursor_invalid', name, given.slice(0, 100));
  return Number(given);
}
