import type { ErrorName } from '../core/errors.ts';

/** What a stream carries: the rest of a run that the request has created or resumed, a run's events, or the feed of runs. */
export type StreamMode = 'run' | 'events' | 'runs';

/**
 * Why the server ended a stream: its client did not read, too many were open, its credentials hold no more, or the server
 * stopped. `stalled` counts other answers as well.
 */
type DropReason = 'stalled' | 'limit' | 'stopping' | 'unauthenticated';

/** A request whose response is complete, or whose client has left. */
interface ClosedRequest {
  readonly method: string;
  /** The pattern of the route; undefined where none matched. */
  readonly route: string | undefined;
  /** Undefined where the connection closed before there was a response. */
  readonly status: number | undefined;
  readonly seconds: number;
  readonly stream: StreamMode | undefined;
}

/** Is told about requests and streams, never about a single event of a stream. Never throws. */
export interface TrafficObserver {
  onRequest(request: ClosedRequest): void;
  onStream(mode: StreamMode): void;
  /** A stream continues after a cursor; `gap` is the number of events that the client has missed so far. */
  onStreamResumed(gap: number): void;
  onStreamDropped(reason: DropReason): void;
  /** A request was refused: for its sender, its size, or because the server has no room. */
  onRefused(reason: ErrorName): void;
  /** An authentication has accepted or refused credentials of a kind, such as `key` or `jwt`. */
  onAuthentication(kind: string, outcome: 'accepted' | 'refused'): void;
  /** A limit of a principal or an address has refused a request. */
  onRateLimited(limit: string): void;
}

/** Where metrics are off. */
export const unobserved: TrafficObserver = {
  onRequest() {},
  onStream() {},
  onStreamResumed() {},
  onStreamDropped() {},
  onRefused() {},
  onAuthentication() {},
  onRateLimited() {},
};
