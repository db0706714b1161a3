import { type Static, Type } from '@sinclair/typebox';
import { HttpUrl, Uuid } from './scalars.ts';

/** A conversation: the URLs of its messages and of its state. Another server can continue it. */
export const Session = Type.Object(
  {
    id: Uuid,
    history: Type.Array(HttpUrl, { description: 'URLs of messages, oldest first' }),
    state: Type.Optional(HttpUrl),
  },
  { $id: 'Session', description: 'a conversation: the URLs of its messages and of its state' },
);
export type Session = Static<typeof Session>;

/** A session as a client sends it: a new one needs no history. */
export const SessionInput = Type.Object(
  {
    id: Uuid,
    history: Type.Optional(Type.Array(HttpUrl, { maxItems: 1_000 })),
    state: Type.Optional(HttpUrl),
  },
  { $id: 'SessionInput', description: 'a session, also one of another server; a new one needs no history' },
);
export type SessionInput = Static<typeof SessionInput>;
