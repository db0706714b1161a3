import { useEffect, useRef, useState } from 'preact/hooks';
import {
  asksYesOrNo,
  type Choice,
  choicesOf,
  fieldKind,
  initialValue,
  type ReplySchema,
} from '../../client/reply-form.ts';
import { textOf } from '../content.ts';
import type { OpenQuestion } from '../conversation.ts';
import { formatTime } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { isTyped, useReply } from './answer-box.tsx';
import { firstField, focusIfFree } from './focus.ts';
import { FormField } from './form-field.tsx';

/** Choices that are shown as buttons. */
const maxButtons = 6;

/** What answers an open question in its card: buttons for a few choices, or a form for its JSON Schema. */
export function AnswerForm({ question, followed }: { question: OpenQuestion; followed: boolean }) {
  const { request } = question;
  return (
    <>
      {isTyped(request) ? (
        <TypedAnswer question={question} followed={followed} />
      ) : (
        <SchemaForm question={question} schema={request.schema ?? {}} />
      )}
      {request.expires_at !== undefined && <p class="note">The run waits until {formatTime(request.expires_at)}.</p>}
    </>
  );
}

/** Buttons for the usual answers. Other answers are typed in the composer, if it belongs to this question. */
function TypedAnswer({ question, followed }: { question: OpenQuestion; followed: boolean }) {
  const { conversation, router } = usePlayground();
  const { run, request } = question;
  const { send, sending, problems } = useReply(question);
  const choices = usualAnswers(question);
  const composed = followed && conversation.left.value !== run.run_id;
  return (
    <div class="row wrap">
      {choices.map(({ label, value }) => (
        <button key={label} type="button" disabled={sending} onClick={() => send(value)}>
          {label}
        </button>
      ))}
      {composed ? (
        <span class="note">
          {choices.length === 0
            ? 'Type the answer below.'
            : request.schema === undefined && 'Or type the answer below.'}
        </span>
      ) : (
        <button
          type="button"
          class="quiet"
          onClick={() => (followed ? conversation.leave(undefined) : router.push({ run: run.run_id }))}
        >
          Type the answer
        </button>
      )}
      {problems.map(({ text }) => (
        <p key={text} class="problem" role="alert">
          {text}
        </p>
      ))}
    </div>
  );
}

function usualAnswers({ request: { schema, message } }: OpenQuestion): readonly Choice[] {
  const yesOrNo = (yes: unknown, no: unknown) => [
    { label: 'Yes', value: yes },
    { label: 'No', value: no },
  ];
  if (schema === undefined) return asksYesOrNo(textOf(message)) ? yesOrNo('yes', 'no') : [];
  if (fieldKind(schema) === 'boolean') return yesOrNo(true, false);
  return (choicesOf(schema) ?? []).slice(0, maxButtons);
}

function SchemaForm({ question, schema }: { question: OpenQuestion; schema: ReplySchema }) {
  const [value, setValue] = useState(() => initialValue(schema));
  const { send, sending, problems } = useReply(question);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    focusIfFree(firstField());
  }, []);
  useEffect(() => {
    if (problems.length === 0) return;
    const invalid = form.current?.querySelector<HTMLElement>('[aria-invalid]');
    (invalid?.querySelector<HTMLElement>('input') ?? invalid)?.focus();
  }, [problems]);
  return (
    <form
      ref={form}
      id="answer"
      class="fields"
      noValidate
      aria-label={`The answer to ${question.run.agent_name}`}
      onSubmit={(event) => {
        event.preventDefault();
        if (!sending) send(value);
      }}
    >
      <FormField schema={schema} path="" value={value} onChange={setValue} problems={problems} required />
      <div class="row">
        <button type="submit" class="primary" disabled={sending}>
          Answer
        </button>
      </div>
    </form>
  );
}
