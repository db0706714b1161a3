import { fail } from '../../core/errors.ts';
import { uuidPattern } from '../../schema/formats.ts';
import { runPlaceIds } from '../run-place.ts';
import type { Turn } from '../turns.ts';

const responses = runPlaceIds('resp_', '_');
const calls = runPlaceIds('call_', '_');
const itemPattern = new RegExp(`^(?:msg|rs|mcp|ig|fc)_(${uuidPattern})_[1-9]\\d{0,9}$`);
const conversationPattern = new RegExp(`^conv_(${uuidPattern})$`);

/** A response is a turn. Its id has the number of the event that begins it; that of the first has none. */
export const responseId = ({ run_id, after }: Turn): string =>
  responses.of(run_id, after === 0 ? undefined : after + 1);

/** The turn that a response is. @throws RivuletError `run_unknown` */
export function turnOfResponse(id: string): Turn {
  const { run_id, n } = responses.in(id) ?? {};
  // No reply is the first event of a run.
  if (run_id === undefined || (n !== undefined && n < 2)) throw fail('run_unknown', id.slice(0, 100));
  return { run_id, after: (n ?? 1) - 1 };
}

/** The call by which a run that awaits asks its client. */
export const callId = (run_id: string, event: number): string => calls.of(run_id, event);

/** The run that a call belongs to, and the event with which it awaits; undefined for the calls of other servers. */
export function placeOfCall(id: string): { readonly run_id: string; readonly event: number } | undefined {
  const { run_id, n = 0 } = calls.in(id) ?? {};
  return run_id === undefined || n === 0 ? undefined : { run_id, event: n };
}

/** The run of an item of an output; undefined for the items of other servers. */
export const runOfItem = (id: string): string | undefined => itemPattern.exec(id)?.[1];

/** A client's conversation: the text whose session it is. */
export const conversationText = (id: string): string => conversationPattern.exec(id)?.[1] ?? id;

/** Frames that one event may have, so that a frame's number tells its event and its place among them. */
export const framesPerEvent = 16;

/** The number of a frame: the cursor of a client. */
export function sequenceNumber(event: number, index: number): number {
  if (index >= framesPerEvent) throw new Error(`event ${event}: expected at most ${framesPerEvent} frames`);
  return event * framesPerEvent + index;
}
