import { fieldsOf, isObject, type ReplySchema } from '../../client/reply-form.ts';
import type { AwaitResume, Question, Run } from '../../schema/run.ts';
import { contentOf } from '../content.ts';
import { formatTime } from '../format.ts';
import { AnswerForm } from './answer-form.tsx';
import { ArtifactView } from './artifact-view.tsx';
import { JsonView } from './json-view.tsx';
import { MessageBody } from './message-view.tsx';

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
    <section class="question" data-state={state} aria-label={`${run.agent_name} asks`}>
      <div class="role">
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
  const at = message.created_at;
  return (
    <div class="answer">
      <AnswerValue reply={reply} schema={schema} />
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

function AnswerValue({ reply: { message }, schema }: { reply: AwaitResume; schema: ReplySchema | undefined }) {
  const { text, artifacts } = contentOf(message.parts);
  const data = message.parts.find(({ name, content_type }) => name === undefined && /json/i.test(content_type ?? ''));
  const value = data === undefined ? undefined : parsed(data.content ?? '');
  return (
    <>
      {text !== '' && <p class="said">{text}</p>}
      {value !== undefined && <Values value={value.value} schema={schema} />}
      {artifacts
        .filter((part) => part !== data || value === undefined)
        .map((part, index) => (
          <ArtifactView key={`${index}`} part={part} />
        ))}
    </>
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
  return (
    <dl class="values">
      {Object.entries(value).map(([name, item]) => (
        <div key={name}>
          <dt>{titles.get(name) ?? name}</dt>
          <dd>{shown(item)}</dd>
        </div>
      ))}
    </dl>
  );
}

function shown(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
