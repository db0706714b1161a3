import { fail, RivuletError } from '../core/errors.ts';
import type { RunHeaders } from '../schema/api.ts';

// Errors of the engine, in the terms of the request that a client of another protocol has sent.

/** The place of a reply, as the engine names it: the message, all of its text, or the JSON part. */
const inReply = /^await_resume\.message(?:\.parts(?:\[\d+\]\.content)?)?/;

/** An error about a reply, with the place that the reply has in the request of a client. */
export function atPlace(error: unknown, place: string): unknown {
  if (!(error instanceof RivuletError && error.kind === 'validation_failed')) return error;
  return new RivuletError(error.kind, error.message.replace(inReply, place));
}

/** An error of a client that has used the id of an earlier request. The client knows no Idempotency-Key where it has sent none. */
export function reusedId(error: unknown, headers: RunHeaders, field: string, advice: string): unknown {
  const isReused = error instanceof RivuletError && error.kind === 'idempotency_key_reused';
  return isReused && headers['idempotency-key'] === undefined ? fail('validation_failed', field, advice) : error;
}
