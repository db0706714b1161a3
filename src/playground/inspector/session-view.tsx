import { useEffect, useState } from 'preact/hooks';
import type { Client } from '../../client/client.ts';
import { textOf } from '../../core/parts.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Message } from '../../schema/message.ts';
import { usePlayground } from '../app/playground.ts';
import type { FollowedRun } from '../conversation/conversation.ts';
import { formatNumber } from '../elements/format.ts';
import { JsonView, LongText } from '../elements/json-view.tsx';

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
  /** Undefined for a session without a state. */
  readonly state: unknown;
}

/** Reads a session with its `newest` messages. @throws ClientError */
async function readSession(
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

/** Messages that are read at first, and those that each click adds. */
const pageSize = 20;

/** The history and the state of the run's session as they are now. They are read again when the run ends. */
export function SessionView({ followed: { record } }: { followed: FollowedRun }) {
  const { client } = usePlayground();
  const [newest, setNewest] = useState(pageSize);
  const [content, setContent] = useState<SessionContent>();
  const [problem, setProblem] = useState<string>();
  const session_id = record.run?.session_id;
  const final = record.run !== undefined && isFinal(record.run.status);
  useEffect(() => {
    if (session_id === undefined) return;
    const abort = new AbortController();
    readSession(client, session_id, newest, abort.signal).then(
      (read) => {
        setContent(read);
        setProblem(undefined);
      },
      (error: Error) => {
        if (!abort.signal.aborted) setProblem(error.message);
      },
    );
    return () => abort.abort();
  }, [client, session_id, newest, final]);
  if (problem !== undefined) return <p class="problem">{problem}</p>;
  if (content === undefined) return <p class="note">Reading…</p>;
  const { messages, earlier, state } = content;
  return (
    <>
      <section class="told" aria-label="History">
        <h3>History</h3>
        {messages.length === 0 && (
          <p class="note">No messages. Those of a run are in the history when it has completed.</p>
        )}
        {earlier > 0 && (
          <button type="button" class="quiet" onClick={() => setNewest(newest + pageSize)}>
            {formatNumber(earlier)} earlier messages
          </button>
        )}
        <ol class="lines">
          {messages.map(({ url, role, text }) => (
            <li key={url} data-role={role}>
              <p class="entry">
                <span class="type">{role ?? 'not here'}</span>
              </p>
              <div class="piece">
                <LongText text={text ?? url} />
              </div>
            </li>
          ))}
        </ol>
      </section>
      <section class="told" aria-label="State">
        <h3>State</h3>
        {state === undefined ? <p class="note">No state.</p> : <JsonView label="the state" value={state} />}
      </section>
    </>
  );
}
