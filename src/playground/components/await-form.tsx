import { useState } from 'preact/hooks';
import { ClientError, type Run } from '../../client/client.ts';
import { initialValue, type Problem, problemOf, type ReplySchema } from '../../client/reply-form.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import { formatTime } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { FormField } from './form-field.tsx';
import { MessageView } from './message-view.tsx';

const noProblem: Problem = { path: '', text: '' };

/** A form for the reply to a run that awaits: from the request's JSON Schema, or a text field without one. */
export function AwaitForm({ run, request }: { run: Run; request: AwaitRequest }) {
  const { conversation } = usePlayground();
  const schema: ReplySchema | undefined = request.schema;
  const [value, setValue] = useState(() => (schema === undefined ? '' : initialValue(schema)));
  const [problem, setProblem] = useState(noProblem);
  const [sending, setSending] = useState(false);

  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setProblem(noProblem);
    setSending(true);
    try {
      await conversation.reply(run.run_id, {
        content_type: schema === undefined ? 'text/plain' : 'application/json',
        content: schema === undefined ? String(value) : (JSON.stringify(value) ?? 'null'),
      });
      // The form disappears, so the focus moves to the message box.
      document.getElementById('message')?.focus();
    } catch (error) {
      setProblem(error instanceof ClientError ? problemOf(error.message) : { path: '', text: String(error) });
    } finally {
      setSending(false);
    }
  };

  return (
    <form class="await" onSubmit={send} noValidate aria-label={`${run.agent_name} asks`}>
      <MessageView message={request.message} />
      <FormField
        schema={schema ?? { type: 'string', title: 'Your answer' }}
        path=""
        value={value}
        onChange={setValue}
        problem={problem}
        required
      />
      <div class="row">
        <button type="submit" class="primary" disabled={sending}>
          Answer
        </button>
        {request.expires_at !== undefined && (
          <span class="note">The run waits until {formatTime(request.expires_at)}.</span>
        )}
      </div>
    </form>
  );
}
