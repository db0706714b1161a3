import type { Client } from '../client/client.ts';
import { textOf } from '../core/parts.ts';
import type { Message } from '../schema/message.ts';

/** A message of a session's history; without one where it is of another server, or was removed. */
interface SessionMessage {
  readonly url: string;
  readonly role?: string;
  readonly text?: string;
}

/** A session as it is now: its newest messages, how many there are before them, and its state. */
export interface SessionContent {
  readonly messages: readonly SessionMessage[];
  readonly earlier: number;
  /** Undefined where it has none. */
  readonly state: unknown;
}

/** Reads a session with its `newest` messages. @throws ClientError */
export async function readSession(
  client: Pick<Client, 'session' | 'resource'>,
  session_id: string,
  newest: number,
  signal: AbortSignal,
): Promise<SessionContent> {
  const { history = [], state } = await client.session(session_id, { signal });
  const urls = history.slice(-newest);
  const messages = await Promise.all(
    urls.map(async (url): Promise<SessionMessage> => {
      const found = await client.resource(url, { signal }).catch(() => undefined);
      return isMessage(found) ? { url, role: found.role, text: textOf(found) } : { url };
    }),
  );
  return {
    messages,
    earlier: history.length - urls.length,
    state: state === undefined ? undefined : await client.resource(state, { signal }),
  };
}

const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && 'role' in value && 'parts' in value && Array.isArray(value.parts);
