/** @jsxImportSource react */
import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  type DynamicToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai';
import { type FormEvent, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { resumingFetch } from 'rivulet/client/ai-sdk';

function Chat({ api, id, before }: { api: string; id: string; before: UIMessage[] }) {
  const { messages, status, error, stop, regenerate, sendMessage, addToolOutput, addToolApprovalResponse } = useChat({
    id,
    messages: before,
    // The turn under way, which `before` does not have.
    resume: true,
    transport: new DefaultChatTransport({
      api,
      body: { approvals: true },
      // A run whose page has left for good is cancelled, and "Again" drops a run that has not ended.
      headers: { 'On-Disconnect': 'grace=10' },
      fetch: resumingFetch(),
    }),
    sendAutomaticallyWhen: (chat) =>
      lastAssistantMessageIsCompleteWithToolCalls(chat) || lastAssistantMessageIsCompleteWithApprovalResponses(chat),
  });
  // `stop` alone closes the connection, and the agent would go on for the time of grace.
  const end = async () => {
    const answer = messages.at(-1);
    await stop();
    // The id of an answer is the id of its run. Before its first chunk there is none.
    if (answer?.role === 'assistant') await fetch(`/runs/${answer.id}/cancel`, { method: 'POST' });
  };
  const question = (part: DynamicToolUIPart) => {
    const { toolCallId, toolName, state, input, approval } = part;
    const asked = toolName === 'await' ? Object(input).message : `${toolName} ${JSON.stringify(input)}`;
    if (state === 'approval-requested' && approval !== undefined) {
      const decide = (approved: boolean) => () => addToolApprovalResponse({ id: approval.id, approved });
      return (
        <p>
          {asked}{' '}
          <button type="button" onClick={decide(true)}>
            Approve
          </button>{' '}
          <button type="button" onClick={decide(false)}>
            Deny
          </button>
        </p>
      );
    }
    if (toolName !== 'await' || state !== 'input-available') return <p>{asked}</p>;
    return <Say label={asked} onSay={(output) => addToolOutput({ tool: toolName, toolCallId, output })} />;
  };
  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <section key={id} data-role={role}>
          {parts.map((part, index) => {
            const key = `${id} ${index}`;
            if (part.type === 'text') return <p key={key}>{part.text}</p>;
            if (part.type === 'reasoning') return <em key={key}>{part.text}</em>;
            if (part.type === 'source-url') return <a key={key} href={part.url} children={part.title ?? part.url} />;
            if (part.type === 'file') return <a key={key} href={part.url} children={part.mediaType} />;
            return part.type === 'dynamic-tool' ? <div key={key}>{question(part)}</div> : null;
          })}
        </section>
      ))}
      {error && <p role="alert">{error.message}</p>}
      {status === 'ready' || status === 'error' ? (
        <button type="button" onClick={() => regenerate()}>
          Again
        </button>
      ) : (
        <button type="button" onClick={end}>
          Stop
        </button>
      )}
      <Say label="Say something" onSay={(text) => sendMessage({ text })} />
    </main>
  );
}

function Say({ label, onSay }: { label: string; onSay: (text: string) => unknown }) {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    onSay(String(new FormData(event.currentTarget).get('text')));
    event.currentTarget.reset();
  };
  return (
    <form onSubmit={submit}>
      <label>
        {label} <input name="text" autoComplete="off" />
      </label>
    </form>
  );
}

// The address keeps the chat, so that a reload shows it again.
const address = new URL(location.href);
const id = address.searchParams.get('chat') ?? crypto.getRandomValues(new Uint32Array(2)).join('-');
address.searchParams.set('chat', id);
history.replaceState(null, '', address);
const api = `/ai/${address.searchParams.get('agent') ?? 'echo'}`;
const { messages } = await (await fetch(`${api}/${id}`)).json();

createRoot(document.querySelector('#app') ?? document.body).render(
  <StrictMode>
    <Chat api={api} id={id} before={messages} />
  </StrictMode>,
);
