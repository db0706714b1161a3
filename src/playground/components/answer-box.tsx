import { useEffect, useState } from 'preact/hooks';
import { ClientError } from '../../client/client.ts';
import {
  choicesOf,
  fieldKind,
  type Problem,
  parseValue,
  problemsOf,
  type ReplySchema,
} from '../../client/reply-form.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import type { OpenQuestion } from '../conversation.ts';
import { usePlayground } from '../playground.ts';
import { Icon } from './icons.tsx';
import { MessageBox } from './message-box.tsx';
import { StopButton } from './stop-button.tsx';

/** Whether an answer is one text, number or choice that a person types; other answers need a form. */
export function isTyped({ schema }: AwaitRequest): boolean {
  if (schema === undefined) return true;
  const { format }: ReplySchema = schema;
  const kind = fieldKind(schema);
  return kind === 'boolean' || (kind === 'text' && format === undefined) || kind === 'choice';
}

/** The composer while a run asks: what is typed answers the question, and starts no run. */
export function AnswerBox({ question }: { question: OpenQuestion }) {
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
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== '' && !sending) send(toValue(text, request));
      }}
    >
      {problems.map(({ text: problem }) => (
        <p key={problem} class="problem" role="alert">
          {problem}
        </p>
      ))}
      <p class="asked">
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
        <div class="box" data-answers>
          <MessageBox
            id="message"
            label={`Your answer to ${run.agent_name}`}
            placeholder={`Answer ${run.agent_name}…`}
            value={text}
            onInput={setText}
          />
          <StopButton />
          <button type="submit" class="primary round" aria-label="Answer" disabled={text.trim() === '' || sending}>
            <Icon name="send" />
          </button>
        </div>
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

export interface ReplyState {
  readonly send: (value: unknown) => void;
  readonly sending: boolean;
  /** Why the server refused the last reply. */
  readonly problems: readonly Problem[];
}

/** Sends the reply to a question, and keeps the problems of a refused one. */
export function useReply(question: OpenQuestion): ReplyState {
  const { conversation } = usePlayground();
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const [sending, setSending] = useState(false);
  const send = async (value: unknown): Promise<void> => {
    setProblems([]);
    setSending(true);
    try {
      await conversation.reply(question, value);
    } catch (error) {
      setProblems(error instanceof ClientError ? problemsOf(error) : [{ path: '', text: String(error) }]);
    } finally {
      setSending(false);
    }
  };
  return { send: (value) => void send(value), sending, problems };
}
