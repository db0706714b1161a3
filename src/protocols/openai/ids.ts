import { fail } from '../../core/errors.ts';
import type { Turn } from '../turns.ts';

// Ids are functions of a run and of the number of an event: all readers, nodes and restarts agree on them, and nothing
// is stored for them.

const uuid = '[\\da-f]{8}(?:-[\\da-f]{4}){3}-[\\da-f]{12}';
/** No reply is the first event of a run. */
const responsePattern = new RegExp(`^resp_(${uuid})(?:_([2-9]|[1-9]\\d{1,9}))?$`);
const callPattern = new RegExp(`^call_(${uuid})_([1-9]\\d{0,9})$`);
const itemPattern = new RegExp(`^(?:msg|rs|mcp|ig|fc)_(${uuid})_[1-9]\\d{0,9}$`);
const conversationPattern = new RegExp(`^conv_(${uuid})$`);

/** What the id of a call says: a run, and the number of an event of it. */
interface Place {
  readonly run_id: string;
  readonly event: number;
}

/** A response is a turn. Its id has the number of the event that begins it; that of the first has none. */
export const responseId = ({ run_id, after }: Turn): string =>
  after === 0 ? `resp_${run_id}` : `resp_${run_id}_${after + 1}`;

/** The turn that a response is. @throws RivuletError `run_unknown` */
export function turnOfResponse(id: string): Turn {
  const [, run_id, event = '1'] = responsePattern.exec(id) ?? [];
  if (run_id === undefined) throw fail('run_unknown', id.slice(0, 100));
  return { run_id, after: Number(event) - 1 };
}

/** The call by which a run that awaits asks its client. */
export const callId = (run_id: string, event: number): string => `call_${run_id}_${event}`;

/** The run that a call belongs to, and the event with which it awaits; undefined for the calls of other servers. */
export function placeOfCall(id: string): Place | undefined {
  const [, run_id, event] = callPattern.exec(id) ?? [];
  return run_id === undefined ? undefined : { run_id, event: Number(event) };
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
