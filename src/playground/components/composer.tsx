import { useEffect, useRef } from 'preact/hooks';
import type { AgentManifest } from '../../client/client.ts';
import { usePlayground } from '../playground.ts';
import { AnswerBox, isTyped } from './answer-box.tsx';
import { AttachButton, AttachmentList } from './attachments.tsx';
import { firstField, focusIfFree } from './focus.ts';
import { Icon } from './icons.tsx';
import { MessageBox } from './message-box.tsx';
import { StopButton } from './stop-button.tsx';

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
      class="composer"
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
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <LeftQuestion />
      <AttachmentList files={draft.files.value} onRemove={(file) => draft.remove(file)} />
      <div class="box">
        <AttachButton accept={acceptedTypes(manifest)} onPick={(files) => draft.attach(files)} />
        <MessageBox
          id="message"
          label={`Message to ${agent}`}
          placeholder={`Message ${agent}…`}
          value={draft.text.value}
          onInput={(text) => draft.write(text)}
        />
        <StopButton />
        <button
          type="submit"
          class="primary round"
          aria-label="Send"
          disabled={draft.empty || conversation.sending.value}
        >
          <Icon name="send" />
        </button>
      </div>
    </form>
  );
}

/** The way back to the question that the user has left. */
function LeftQuestion() {
  const { conversation } = usePlayground();
  const question = conversation.question.value;
  if (question === undefined) return null;
  return (
    <p class="asked">
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
