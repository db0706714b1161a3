import type { Event } from '../client/client.ts';
import { callOf } from '../core/parts.ts';

/**
 * Times of the events of a run that the page reads from the server's log. Changes of status, messages and calls
 * have the server's times. Other events have none: each comes as long after the last time of the server as it arrived after it.
 * That is exact for events that arrive live, and the earliest possible time for those of the past.
 */
export class EventClock {
  /** The time of the run's creation, in milliseconds since 1970. */
  #start: number | undefined;
  /** The last event with a time of the server: milliseconds since the start, and its arrival. */
  #at = 0;
  #arrival: number | undefined;
  #last = 0;

  /** The time of the next event, in milliseconds since the run's creation; it never decreases. */
  add(event: Event, arrival: number): number {
    const stamp = stampOf(event);
    if (stamp !== undefined) {
      this.#start ??= stamp;
      this.#at = stamp - this.#start;
      this.#arrival = arrival;
    }
    this.#last = Math.max(this.#last, this.elapsed(arrival));
    return this.#last;
  }

  /** Milliseconds since the run's creation, at a time on the clock of the arrivals. */
  elapsed(time: number): number {
    return Math.max(this.#last, this.#at + time - (this.#arrival ?? time));
  }
}

/** When the server recorded the event, in milliseconds since 1970. */
function stampOf(event: Event): number | undefined {
  const time = timeIn(event);
  return typeof time === 'string' ? Date.parse(time) : undefined;
}

function timeIn(event: Event): string | null | undefined {
  if (event.type === 'message.created') return event.message.created_at;
  if (event.type === 'message.completed') return event.message.completed_at;
  if (event.type === 'generic') return callOf(event.generic)?.at;
  if (!('run' in event)) return undefined;
  const { status, created_at, finished_at, await_request, await_resume } = event.run;
  if (status === 'created') return created_at;
  if (status === 'awaiting') return await_request?.message.created_at;
  return status === 'in-progress' ? await_resume?.received_at : finished_at;
}
