import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AgentManifest } from '../../client/client.ts';
import { isFinal } from '../../core/run-state.ts';
import { choicesOf, parseValue } from '../../forms/reply-form.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import { usePlayground } from '../app/playground.ts';
import { Icon, MessageBox, Problems } from '../elements/controls.tsx';
import { formatBytes } from '../elements/format.ts';
import { firstField, focusIfFree, isTyped, useReply } from '../forms/question-card.tsx';
import type { OpenQuestion } from './conversation.ts';

/**
 * The box for the next message to the agent. While the followed run asks, it is the box for the answer; a question with a
 * form of several fields is answered in the form alone.
 */
export function Composer({ agent, manifest }: { agent: string; manifest: AgentManifest | undefined }) {
  const { conversation } = usePlayground();
  const question = conversation.question.value;
  const asked = question !== undefined && conversation.left.value !== question.run.run_id ? question : undefined;
  const box = asked === undefined ? 'message' : `${asked.run.run_id} ${asked.request.id}`;
  const previous = useRef(box);
  useEffect(() => {
    if (previous.current === box) return;
    previous.current = box;
    // The form may have been drawn while the message box, which is gone now, had the focus.
    if (asked !== undefined && !isTyped(asked.request)) focusIfFree(firstField());
    // A touch screen would open its keyboard, above the answer.
    if (!matchMedia('(pointer: coarse)').matches) focusIfFree(document.getElementById('message'));
  }, [box]);
  if (asked !== undefined) return <AnswerBox key={box} question={asked} />;
  return <MessageForm agent={agent} manifest={manifest} />;
}

function MessageForm({ agent, manifest }: { agent: string; manifest: AgentManifest | undefined }) {
  const { conversation, router } = usePlayground();
  const { draft } = conversation;
  const { prompt } = router.route.value;
  useEffect(() => {
    if (prompt === undefined) return;
    draft.write(prompt);
    router.replace({ prompt: undefined });
    document.getElementById('message')?.focus();
  }, [prompt]);
  const problem = draft.problem.value ?? conversation.problem.value;
  return (
    <form
      class="composer stack"
      onSubmit={(event) => {
        event.preventDefault();
        void conversation.sendDraft(agent);
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        draft.attach([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <Problems texts={problem === undefined ? [] : [problem]} />
      <LeftQuestion />
      <AttachmentList files={draft.files.value} onRemove={(file) => draft.remove(file)} />
      <SendBox
        label={`Message to ${agent}`}
        placeholder={`Message ${agent}…`}
        text={draft.text.value}
        onInput={(text) => draft.write(text)}
        submit="Send"
        disabled={draft.empty || conversation.sending.value}
      >
        <AttachButton accept={acceptedTypes(manifest)} onPick={(files) => draft.attach(files)} />
      </SendBox>
    </form>
  );
}

interface SendBoxProps {
  readonly label: string;
  readonly placeholder: string;
  readonly text: string;
  readonly onInput: (text: string) => void;
  /** The name of the button that sends the text. */
  readonly submit: 'Send' | 'Answer';
  readonly disabled: boolean;
  readonly children?: ComponentChildren;
}

/** What a person types, with the buttons that send it and stop the run. */
const SendBox = ({ label, placeholder, text, onInput, submit, disabled, children }: SendBoxProps) => (
  <div class="box" data-answers={submit === 'Answer' || undefined}>
    {children}
    <MessageBox id="message" label={label} placeholder={placeholder} value={text} onInput={onInput} />
    <StopButton />
    <button type="submit" class="primary round" aria-label={submit} disabled={disabled}>
      <Icon name="send" />
    </button>
  </div>
);

/** The way back to the question that the user has left. */
function LeftQuestion() {
  const { conversation } = usePlayground();
  const question = conversation.question.value;
  if (question === undefined) return null;
  return (
    <p class="asked row">
      <span>
        Enter starts another run. <strong>{question.run.agent_name}</strong> still waits for an answer.
      </span>
      <button type="button" class="quiet" onClick={() => conversation.leave(undefined)}>
        Answer the question
      </button>
    </p>
  );
}

/** The content types for the file picker; undefined if the agent accepts all. */
function acceptedTypes(manifest: AgentManifest | undefined): string | undefined {
  const types = manifest?.input_content_types ?? ['*/*'];
  return types.includes('*/*') ? undefined : types.join(',');
}

/** `accept` lists content types, as an input has them; undefined accepts all. */
function AttachButton({ accept, onPick }: { accept: string | undefined; onPick: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files"
        accept={accept}
        onChange={({ currentTarget }) => {
          onPick([...(currentTarget.files ?? [])]);
          // Otherwise, picking the same file again would cause no event.
          currentTarget.value = '';
        }}
      />
      <button type="button" class="quiet round" aria-label="Attach files" onClick={() => input.current?.click()}>
        <Icon name="attach" />
      </button>
    </>
  );
}

/** The files of the next message. */
function AttachmentList({ files, onRemove }: { files: readonly File[]; onRemove: (file: File) => void }) {
  if (files.length === 0) return null;
  return (
    <ul class="files row">
      {files.map((file, index) => (
        <li key={`${index}`} class="tag row">
          {file.name} <small>{formatBytes(file.size)}</small>
          <button type="button" class="quiet" aria-label={`Remove ${file.name}`} onClick={() => onRemove(file)}>
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Cancels the followed run, while it is not final. */
function StopButton() {
  const { conversation } = usePlayground();
  const run = conversation.followed.value?.record.run;
  if (run === undefined || isFinal(run.status)) return null;
  return (
    <button
      type="button"
      class="stop round"
      aria-label="Stop the run"
      disabled={run.status === 'cancelling'}
      onClick={() => void conversation.cancel(run.run_id)}
    >
      <Icon name="stop" />
    </button>
  );
}

/** The composer while a run asks: what is typed answers the question, and starts no run. */
function AnswerBox({ question }: { question: OpenQuestion }) {
  const { conversation } = usePlayground();
  const { run, request } = question;
  const [text, setText] = useState('');
  const { send, sending, problems } = useReply(question);
  const typed = isTyped(request);
  const leave = (): void => conversation.leave(run.run_id);
  useEffect(() => {
    const onKey = ({ key, isComposing }: KeyboardEvent): void => {
      if (key === 'Escape' && !isComposing) leave();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <form
      class="composer stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== '' && !sending) send(toValue(text, request));
      }}
    >
      <Problems texts={problems.map((problem) => problem.text)} />
      <p class="asked row">
        <span>
          <strong>{run.agent_name}</strong>{' '}
          {typed ? 'asks: what you type here is the answer.' : 'asks: fill in the form.'}
        </span>
        <button type="button" class="quiet" onClick={leave}>
          Start another run <kbd>Esc</kbd>
        </button>
        {!typed && <StopButton />}
      </p>
      {typed && (
        <SendBox
          label={`Your answer to ${run.agent_name}`}
          placeholder={`Answer ${run.agent_name}…`}
          text={text}
          onInput={setText}
          submit="Answer"
          disabled={text.trim() === '' || sending}
        />
      )}
    </form>
  );
}

function toValue(text: string, { schema }: AwaitRequest): unknown {
  if (schema === undefined) return text;
  const typed = text.trim();
  const chosen = choicesOf(schema)?.find(({ label }) => label.toLowerCase() === typed.toLowerCase());
  return chosen === undefined ? parseValue(typed, schema) : chosen.value;
}
