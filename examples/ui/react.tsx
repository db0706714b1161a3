/** @jsxImportSource react */
import { type FormEvent, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { type Client, createClient, messageText, type Run } from 'rivulet/client';
import { useRun } from 'rivulet/react';

function Answer({ client, run_id }: { client: Client; run_id: string }) {
  const { run, error } = useRun(client, run_id);
  const failure = error ?? run?.error;
  return (
    <section>
      <p>{run?.output.map(messageText).join('\n\n')}</p>
      {failure && <p role="alert">{failure.message}</p>}
      {run?.await_request && (
        <Say label={messageText(run.await_request.message)} onSay={(reply) => client.resume(run_id, reply)} />
      )}
    </section>
  );
}

export function Chat({ client, agent }: { client: Client; agent: string }) {
  const [runs, setRuns] = useState<Run[]>([]);
  // In an event handler, not in an effect, so that it happens once.
  const say = async (text: string): Promise<void> => {
    const session = runs[0]?.session_id;
    const run = await client.start(agent, text, session === undefined ? {} : { session_id: session });
    setRuns((before) => [...before, run]);
  };
  return (
    <main>
      {runs.map(({ run_id }) => (
        <Answer key={run_id} client={client} run_id={run_id} />
      ))}
      <Say label="Say something" onSay={say} />
    </main>
  );
}

function Say({ label, onSay }: { label: string; onSay: (text: string) => Promise<unknown> }) {
  const [failure, setFailure] = useState('');
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get('text'));
    event.currentTarget.reset();
    setFailure('');
    onSay(text).catch((error: Error) => setFailure(error.message));
  };
  return (
    <form onSubmit={submit}>
      <label>
        {label} <input name="text" />
      </label>
      {failure && <p role="alert">{failure}</p>}
    </form>
  );
}

const app = globalThis.document?.getElementById('app');
if (app) {
  const agent = new URLSearchParams(location.search).get('agent') ?? 'echo';
  createRoot(app).render(<Chat client={createClient({ url: '/' })} agent={agent} />);
}
