/** A message or a state that clients read at `/resources/{id}`. */
export interface Resource {
  readonly resource_id: string;
  readonly session_id: string;
  /** The run with which the resource is removed; null if it belongs to the session, as a state does. */
  readonly run_id: string | null;
  readonly content_type: string;
  readonly body: string;
}

export interface SessionRow {
  readonly session_id: string;
  /** Resources of this store as `/resources/{id}`, all others as absolute URLs; oldest first. */
  readonly history: readonly string[];
  readonly state: string | null;
}

/** The part of a store that keeps sessions. Writes of runs make sessions and add to them: see `Write`. */
export interface SessionStore {
  session(session_id: string): Promise<SessionRow | undefined>;
  /** Several resources in one call; undefined for each that the store does not have. */
  resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]>;
  /** The keys of some sessions of an owner. */
  sessionsOf(owner: string, limit: number): Promise<string[]>;
  /**
   * Removes a session with its messages, its state and all its runs, which lose their deliveries. It and its resources
   * are unknown at once; `sweep` clears their data in steps. Returns false, and changes nothing, if one of its runs is not
   * final.
   */
  removeSession(session_id: string): Promise<boolean>;
}
