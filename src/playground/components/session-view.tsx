import { useEffect, useState } from 'preact/hooks';
import { isFinal } from '../../core/run-state.ts';
import type { FollowedRun } from '../conversation.ts';
import { formatNumber } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { readSession, type SessionContent } from '../session-content.ts';
import { JsonView } from './json-view.tsx';
import { LongText } from './long-text.tsx';

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
          <button type="button" class="quiet more" onClick={() => setNewest(newest + pageSize)}>
            {formatNumber(earlier)} earlier messages
          </button>
        )}
        <ol>
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
