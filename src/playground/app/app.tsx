import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { messageText, type Run } from '../../client/client.ts';
import { Chat } from '../conversation/chat.tsx';
import { Icon } from '../elements/controls.tsx';
import { Inspector } from '../inspector/inspector.tsx';
import { AwaitingList, RunsTable } from '../runs/runs.tsx';
import { AgentGallery, AgentList, SessionList } from './agents.tsx';
import { usePlayground } from './playground.ts';
import { shownView, type View } from './router.ts';

/**
 * The gallery, the runs and the questions take the whole window. The conversation has the agents and the inspector beside
 * it where there is room; a narrow window shows only the selected view. The style sheet decides.
 */
export function App() {
  const { router } = usePlayground();
  const view = shownView(router.route.value);
  const page = pageOf(view);
  return (
    <div class="app" data-view={view}>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <Navigation />
      {page === undefined && (
        <aside class="side" aria-label="Agents and sessions">
          <AgentList />
          <SessionList />
        </aside>
      )}
      <main id="main" class="main" tabIndex={-1}>
        {page ?? <Chat />}
      </main>
      {page === undefined && <Inspector />}
      <ConnectionStatus />
      <Announcer />
      <TokenPrompt />
    </div>
  );
}

/** A view that takes the whole window. */
function pageOf(view: View): JSX.Element | undefined {
  if (view === 'agents') return <AgentGallery />;
  if (view === 'runs') return <RunsTable />;
  return view === 'awaiting' ? <AwaitingList /> : undefined;
}

const views: readonly { view: View; label: string }[] = [
  { view: 'agents', label: 'Agents' },
  { view: 'chat', label: 'Conversation' },
  { view: 'inspect', label: 'Inspector' },
  { view: 'runs', label: 'Runs' },
  { view: 'awaiting', label: 'Awaiting' },
];

function Navigation() {
  const { router, login } = usePlayground();
  const current = shownView(router.route.value);
  return (
    <header class="top">
      <h1 class="brand row">
        <Icon name="logo" />
        Rivulet <span>playground</span>
      </h1>
      <nav class="views" aria-label="Views">
        {views.map(({ view, label }) => (
          <a
            key={view}
            class="quiet"
            href={router.href({ view })}
            data-view={view}
            aria-current={view === current ? 'page' : undefined}
          >
            <Icon name={view} />
            {label}
            {view === 'awaiting' && <AwaitingCount />}
          </a>
        ))}
      </nav>
      {login.token !== '' && (
        <button type="button" class="quiet" onClick={() => login.forget()}>
          Forget token
        </button>
      )}
      <a class="quiet docs" href="docs" target="_blank" rel="noopener">
        API docs
      </a>
    </header>
  );
}

/** The number of runs that wait for the reply of a person. */
function AwaitingCount() {
  const { awaiting } = usePlayground();
  const count = awaiting.rows.value?.length ?? 0;
  if (count === 0) return null;
  return <span class="count">{awaiting.older.value === undefined ? count : `${count}+`}</span>;
}

/** Shows that the server cannot be reached, and the time of the next attempt. */
function ConnectionStatus() {
  const { connection, now } = usePlayground();
  const disconnection = connection.disconnection.value;
  if (disconnection === undefined) return null;
  const { attempt, retryAt = 0 } = disconnection;
  const seconds = Math.round((retryAt - now.value) / 1_000);
  return (
    <div class="line" role="alert">
      <strong>Connection lost.</strong> The page reconnects, and the stream continues where it broke. If the server
      restarts, runs of durable agents go on; other runs fail.
      {attempt !== undefined && (
        <span aria-hidden="true">
          {' '}
          Attempt {attempt} {seconds > 0 ? `in ${seconds} s` : 'now'}.
        </span>
      )}
    </div>
  );
}

/** Characters of an output that are read aloud. */
const maxLength = 500;

/** Announces each change of the run's status to screen readers, but not each token. */
function Announcer() {
  const { conversation } = usePlayground();
  const run = conversation.followed.value?.record.run;
  return (
    <p class="unseen" role="status" aria-live="polite">
      {run === undefined ? '' : sentence(run)}
    </p>
  );
}

function sentence({ agent_name, status, output, error, await_request }: Run): string {
  switch (status) {
    case 'completed':
      return `${agent_name} has answered. ${output.map(messageText).join(' ').slice(0, maxLength)}`;
    case 'failed':
      return `${agent_name} has failed. ${error?.message ?? ''}`;
    case 'cancelled':
      return `The run of ${agent_name} was cancelled.`;
    case 'awaiting':
      return `${agent_name} asks: ${await_request === undefined ? '' : messageText(await_request.message)}`;
    case 'created':
    case 'in-progress':
    case 'cancelling':
      return `${agent_name} is working.`;
    default:
      status satisfies never;
      return '';
  }
}

/** Asks for a key or token where the server has refused a request without a valid one. */
function TokenPrompt() {
  const { login } = usePlayground();
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const isAsked = login.isAsked.value;
  useEffect(() => {
    if (isAsked) dialog.current?.showModal();
  }, [isAsked]);
  if (!isAsked) return null;
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = input.current?.value ?? '';
    if (token.trim() !== '') login.use(token);
  };
  return (
    <dialog ref={dialog} aria-labelledby="token-title" onCancel={(event) => event.preventDefault()}>
      <form class="stack" onSubmit={submit}>
        <h2 id="token-title">{login.token === '' ? 'This server needs a token' : 'The server refused the token'}</h2>
        <p>Enter an API key or an access token. The page keeps it until this tab is closed.</p>
        <label>
          Token
          <input ref={input} type="password" name="token" autocomplete="off" spellcheck={false} required />
        </label>
        <button type="submit" class="primary end">
          Use token
        </button>
      </form>
    </dialog>
  );
}
