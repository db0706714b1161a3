import type { IfBusy, OnDisconnect } from '../../core/agent.ts';

/** How a run is asked for, beside what it is. */
export interface Wishes {
  readonly idempotency_key?: string;
  readonly if_busy?: IfBusy;
  readonly on_disconnect?: OnDisconnect;
}

/** A run that has begun, or gone on: its Run as JSON as of then, and where what follows begins in its log. */
export interface Begun {
  readonly run_id: string;
  readonly run: string;
  readonly after: number;
}
