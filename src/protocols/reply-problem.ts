import { RivuletError } from '../core/errors.ts';

/** The place of a reply, as the engine names it: the message, all of its text, or the JSON part. */
const inReply = /^await_resume\.message(?:\.parts(?:\[\d+\]\.content)?)?/;

/** An error about a reply, with the place that the reply has in the request of a client. */
export function atPlace(error: unknown, place: string): unknown {
  if (!(error instanceof RivuletError && error.kind === 'validation_failed')) return error;
  return new RivuletError(error.kind, error.message.replace(inReply, place));
}
