import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ClientError, messageText } from '../../client/client.ts';
import { isObject, readJson } from '../../core/json.ts';
import {
  asksYesOrNo,
  type Choice,
  choicesOf,
  fieldKind,
  fieldsOf,
  initialValue,
  type Problem,
  problemsOf,
  type ReplySchema,
} from '../../forms/reply-form.ts';
import type { AwaitRequest, AwaitResume, Question, Run } from '../../schema/run.ts';
import { usePlayground } from '../app/playground.ts';
import { ArtifactView } from '../conversation/artifact.tsx';
import { contentOf } from '../conversation/content.ts';
import type { OpenQuestion } from '../conversation/conversation.ts';
import { MessageBody } from '../conversation/message-view.tsx';
import { Facts, Problems } from '../elements/controls.tsx';
import { formatTime } from '../elements/format.ts';
import { JsonView } from '../elements/json-view.tsx';
import { useWork } from '../elements/use-work.ts';
import { FormField } from './form-field.tsx';

export interface QuestionCardProps {
  readonly run: Run;
  readonly question: Question;
  /** Whether it is the question that the run awaits the reply to. */
  readonly open: boolean;
  readonly followed: boolean;
}

/** A question of a run: with its form while it is open, then with its answer. */
export function QuestionCard({ run, question, open, followed }: QuestionCardProps) {
  const { request, reply } = question;
  const state = open ? 'open' : reply === undefined ? 'dropped' : 'answered';
  const asked = request.message.created_at;
  return (
    <section class="question stack" data-state={state} aria-label={`${run.agent_name} asks`}>
      <div class="role row">
        <span>{run.agent_name} asks</span>
        {asked !== undefined && <time dateTime={asked}>{formatTime(asked)}</time>}
      </div>
      <MessageBody message={request.message} />
      {open && <AnswerForm question={{ run, request }} followed={followed} />}
      {reply !== undefined && <Answer reply={reply} schema={request.schema} />}
      {state === 'dropped' && <p class="note">This question was not answered.</p>}
    </section>
  );
}

function Answer({ reply, schema }: { reply: AwaitResume; schema: ReplySchema | undefined }) {
  const { message, channel, principal } = reply;
  const { text, artifacts } = contentOf(message.parts);
  const data = message.parts.find(({ name, content_type }) => name === undefined && /json/i.test(content_type ?? ''));
  const value = data && readJson(data.content ?? '');
  const at = message.created_at;
  return (
    <div class="answer stack">
      {text !== '' && <p class="said">{text}</p>}
      {value !== undefined && <Values value={value.value} schema={schema} />}
      {artifacts
        .filter((part) => part !== data || value === undefined)
        .map((part, index) => (
          <ArtifactView key={`${index}`} part={part} />
        ))}
      <p class="note">
        Answered
        {at !== undefined && (
          <>
            {' '}
            <time dateTime={at}>{formatTime(at)}</time>
          </>
        )}
        {channel !== undefined && `, through ${channel}`}
        {principal !== undefined && `, by ${principal}`}
      </p>
    </div>
  );
}

/** The answered values, with the names that the form had. */
function Values({ value, schema = {} }: { value: unknown; schema: ReplySchema | undefined }) {
  if (!isObject(value)) {
    return typeof value === 'object' ? (
      <JsonView label="the answer" value={value} />
    ) : (
      <p class="said">{shown(value)}</p>
    );
  }
  const titles = new Map(fieldsOf(schema).map(({ name, schema: inner }) => [name, inner.title ?? name]));
  const facts = Object.entries(value).map(([name, item]) => [titles.get(name) ?? name, shown(item)] as const);
  return <Facts class="values" facts={facts} />;
}

function shown(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Choices that are shown as buttons. */
const maxButtons = 6;

/** What answers an open question in its card: buttons for a few choices, or a form for its JSON Schema. */
function AnswerForm({ question, followed }: { question: OpenQuestion; followed: boolean }) {
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
    <div class="row">
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
      <Problems texts={problems.map(({ text }) => text)} />
    </div>
  );
}

function usualAnswers({ request: { schema, message } }: OpenQuestion): readonly Choice[] {
  const yesOrNo = (yes: unknown, no: unknown) => [
    { label: 'Yes', value: yes },
    { label: 'No', value: no },
  ];
  if (schema === undefined) return asksYesOrNo(messageText(message)) ? yesOrNo('yes', 'no') : [];
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
      class="fields stack"
      noValidate
      aria-label={`The answer to ${question.run.agent_name}`}
      onSubmit={(event) => {
        event.preventDefault();
        if (!sending) send(value);
      }}
    >
      <FormField schema={schema} path="" value={value} onChange={setValue} problems={problems} required />
      <button type="submit" class="primary" disabled={sending}>
        Answer
      </button>
    </form>
  );
}

/** Whether an answer is one text, number or choice that a person types; other answers need a form. */
export function isTyped({ schema }: AwaitRequest): boolean {
  if (schema === undefined) return true;
  const { format }: ReplySchema = schema;
  const kind = fieldKind(schema);
  return kind === 'boolean' || (kind === 'text' && format === undefined) || kind === 'choice';
}

export interface ReplyState {
  readonly send: (value: unknown) => void;
  readonly sending: boolean;
  /** Why the server refused the last reply. */
  readonly problems: readonly Problem[];
}

/** Sends the reply to a question, and keeps the problems of a refused one. */
export function useReply(question: OpenQuestion): ReplyState {
  const { conversation } = usePlayground();
  const { begin, busy, error } = useWork();
  const problems = useMemo(() => {
    if (error === undefined) return [];
    return error instanceof ClientError ? problemsOf(error) : [{ path: '', text: String(error) }];
  }, [error]);
  return { send: (value) => begin(() => conversation.reply(question, value)), sending: busy, problems };
}

/** The first field of the form of an open question, which has the id `answer`. */
export const firstField = (): HTMLElement | null => document.querySelector('#answer :is(input, select, textarea)');

/**
 * Moves the focus to an element, unless the user is typing somewhere else or is in the inspector. It does not scroll: the
 * conversation decides what is in view.
 */
export function focusIfFree(element: HTMLElement | null): void {
  const focused = document.activeElement;
  const taken = focused?.matches('input, textarea, select, .inspector *');
  if (!taken) element?.focus({ preventScroll: true });
}
